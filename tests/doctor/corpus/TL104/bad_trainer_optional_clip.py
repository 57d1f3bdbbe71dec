import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset


class Trainer(object):
    def __init__(self, model, args):
        self.model = model
        self.args = args
        self.loss_fn = nn.L1Loss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=args["lr"], momentum=0.9)

    def train(self, loader):
        self.model.train()
        for epoch in range(self.args["epochs"]):
            for batch in loader:
                loss = self.train_on_batch(*batch)
            print(f"[{epoch}] {loss:.4f}")

    def train_on_batch(self, seq, target):
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(seq), target)
        if self.args["clip"] is not None:
            clip_grad_norm_(self.model.parameters(), self.args["clip"])  # <- TL104
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(2)
dataset = TensorDataset(torch.randn(48, 9), torch.randn(48, 1))
model = nn.Sequential(nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 1))
Trainer(model, dict(lr=0.01, epochs=2, clip=0.5)).train(DataLoader(dataset, batch_size=8, shuffle=True))
