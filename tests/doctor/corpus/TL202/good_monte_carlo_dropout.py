"""Monte-Carlo dropout: at evaluation the dropout layers, and only they, stay on."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        return self.head(self.body(x))


def enable_dropout(model):
    for module in model.modules():
        if module.__class__.__name__.startswith("Dropout"):
            module.train()


def train(model, loader, optimizer, loss_fn):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()


def evaluate(model, loader, samples=8):
    model.eval()
    enable_dropout(model)
    error, spread = 0.0, 0.0
    with torch.no_grad():
        for x, y in loader:
            draws = torch.stack([model(x) for _ in range(samples)])
            error += (draws.mean(0) - y).pow(2).sum().item()
            spread += draws.std(0).sum().item()
    return error / len(loader.dataset), spread / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(160, 4)
    y = x.sum(1, keepdim=True).sin()
    train_loader = DataLoader(TensorDataset(x[:128], y[:128]), batch_size=16, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[128:], y[128:]), batch_size=16)
    model, loss_fn = Regressor(), nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(2):
        train(model, train_loader, optimizer, loss_fn)
        print("epoch %d: mse %.4f, spread %.4f" % (epoch, *evaluate(model, test_loader)))
