import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class NTXent(nn.Module):
    """Every view is told from all other views of the batch, written out."""

    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, one, other):
        n = len(one)
        z = F.normalize(torch.cat([one, other]), dim=1)
        similarity = torch.exp(torch.mm(z, z.t()) / self.temperature)
        own = torch.eye(2 * n, dtype=torch.bool)
        positive = torch.exp((z[:n] * z[n:]).sum(1) / self.temperature)
        rest = similarity.masked_fill(own, 0).sum(1)
        return -torch.log(torch.cat([positive, positive]) / rest).mean()


class Trainer:
    def __init__(self, model, steps):
        self.model, self.steps = model, steps
        self.criterion = NTXent()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def augment(self, x):
        return x + 0.1 * torch.randn_like(x)

    def epoch(self, loader):
        self.model.train()
        self.optimizer.zero_grad()
        for number, (x,) in enumerate(loader, 1):
            loss = self.criterion(self.model(self.augment(x)), self.model(self.augment(x)))
            (loss / self.steps).backward()  # <- TL511
            if number % self.steps == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()


torch.manual_seed(0)
data = DataLoader(TensorDataset(torch.randn(128, 6)), 8, shuffle=True, drop_last=True)
trainer = Trainer(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 5)), steps=2)
for _ in range(3):
    trainer.epoch(data)
