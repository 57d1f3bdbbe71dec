"""A network whose class is chosen by name is trained under one name and evaluated under another."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--kind", default="Tagger")
args = parser.parse_args()


class Tagger(nn.Module):
    @classmethod
    def build(cls, width):
        return cls(width)

    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(5, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 2)
        )

    def forward(self, x):
        return self.layers(x)


def test(model, loader):
    with torch.no_grad():
        model.eval()
        right = total = 0
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
            total += len(y)
        model.train()
        return right / total


def train(model, optimizer, loader, held):
    best = test(model, held)
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        best = max(best, test(model, held))
        print(epoch, best)


torch.manual_seed(0)
x = torch.randn(640, 5)
y = (x[:, 0] * x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x[:512], y[:512]), batch_size=16, shuffle=True)
held = DataLoader(TensorDataset(x[512:], y[512:]), batch_size=64)
tagger = globals()[args.kind].build(16)
tagger.train()
train(tagger, torch.optim.AdamW(tagger.parameters(), lr=1e-2), loader, held)
