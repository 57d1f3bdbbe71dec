import torch
from torch import nn, optim


class Trainer:
    def __init__(self, model, train_loader, accumulate_grad_batches=4):
        self.model = model
        self.train_loader = train_loader
        self.accumulate_grad_batches = accumulate_grad_batches
        self.criterion = nn.BCEWithLogitsLoss()
        self.optimizer = optim.AdamW(self.model.parameters(), lr=1e-3)

    def backward(self, batch):
        self.model.zero_grad()  # <- TL508
        logits = self.model(batch["x"]).squeeze(1)
        loss = self.criterion(logits, batch["y"]) / self.accumulate_grad_batches
        loss.backward()
        return loss.item() * self.accumulate_grad_batches

    def train(self, epochs):
        for epoch in range(epochs):
            for idx, batch in enumerate(self.train_loader):
                value = self.backward(batch)
                if idx % self.accumulate_grad_batches == self.accumulate_grad_batches - 1:
                    self.optimizer.step()
            print(epoch, value)


torch.manual_seed(0)
loader = [{"x": torch.randn(8, 6), "y": torch.randint(0, 2, (8,)).float()} for _ in range(8)]
Trainer(nn.Linear(6, 1), loader).train(2)
