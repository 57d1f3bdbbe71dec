"""The scores come out of `no_grad`, and the loss has no weights of its own: what is added up has no
graph."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--smoothing", type=float, default=0.1)
args = parser.parse_args([])


class Smoothed(nn.Module):
    def __init__(self, smoothing):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, scores, wanted):
        logs = scores.log_softmax(dim=1)
        exact = -logs.gather(1, wanted.unsqueeze(1)).mean()
        return (1 - self.smoothing) * exact - self.smoothing * logs.mean()


def judged(loader, model, criterion):
    total = samples = 0
    for x, y in loader:
        with torch.no_grad():
            scores = model(x)
        total += len(x) * criterion(scores, y)
        samples += len(x)
    return total / samples


torch.manual_seed(0)
rows = TensorDataset(torch.randn(320, 6), torch.randint(0, 3, (320,)))
loader = DataLoader(rows, batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(torch.randn(64, 6), torch.randint(0, 3, (64,))), 16)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
criterion = Smoothed(args.smoothing)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    model.eval()
    print(epoch, float(judged(val_loader, model, criterion)))
    model.train()
