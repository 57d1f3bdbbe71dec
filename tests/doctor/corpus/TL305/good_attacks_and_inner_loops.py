"""Optimizers made again and again for other things than the model that is trained."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def attack(model, x, y, steps=3):
    delta = torch.zeros_like(x, requires_grad=True)
    optimizer = torch.optim.Adam([delta], lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -F.cross_entropy(model(x + delta), y)
        loss.backward()
        optimizer.step()
    return (x + delta).detach()


def reptile(model, task, lr=0.05, meta_lr=0.5):
    fast = copy.deepcopy(model)
    inner = torch.optim.Adam(fast.parameters(), lr=lr, betas=(0.0, 0.999))
    for x, y in task:
        inner.zero_grad()
        F.cross_entropy(fast(x), y).backward()
        inner.step()
    with torch.no_grad():
        for slow, quick in zip(model.parameters(), fast.parameters()):
            slow += meta_lr * (quick - slow)


def main():
    torch.manual_seed(0)
    x, y = torch.randn(64, 7), torch.randint(0, 3, (64,))
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for xb, yb in loader:
            hard = attack(model, xb, yb)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(hard), yb)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    for episode in range(3):
        reptile(model, [(x[:16], y[:16]), (x[16:32], y[16:32])])


if __name__ == "__main__":
    main()
