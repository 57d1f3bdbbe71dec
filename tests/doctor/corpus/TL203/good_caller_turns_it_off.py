"""The caller, not the function, turns recording off."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Runner:
    def __init__(self, model, optimizer, loss_fn):
        self.model = model
        self.optimizer = optimizer
        self.loss_fn = loss_fn

    def train_epoch(self, loader):
        self.model.train()
        for x, y in loader:
            loss = self.loss_fn(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def eval_epoch(self, loader):
        self.model.eval()
        total = 0.0
        for x, y in loader:
            total += self.loss_fn(self.model(x), y).item() * x.size(0)
        return total / len(loader.dataset)

    def fit(self, train_loader, val_loader, epochs):
        for epoch in range(epochs):
            self.train_epoch(train_loader)
            with torch.no_grad():
                val_loss = self.eval_epoch(val_loader)
            print(f"epoch {epoch}: {val_loss:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(96, 5)
    y = x.norm(dim=1, keepdim=True)
    model = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
    runner = Runner(model, torch.optim.Adam(model.parameters()), nn.SmoothL1Loss())
    runner.fit(
        DataLoader(TensorDataset(x[:64], y[:64]), batch_size=16, shuffle=True),
        DataLoader(TensorDataset(x[64:], y[64:]), batch_size=16),
        epochs=2,
    )
