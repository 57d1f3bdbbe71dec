import argparse

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

parser = argparse.ArgumentParser()
parser.add_argument("--monitor", default="f1", choices=["f1", "loss"])
parser.add_argument("--epochs", type=int, default=6)
settings = parser.parse_args([])


def f1_of(guess, truth):
    hit = (guess & truth).sum().item()
    return 2 * hit / max(guess.sum().item() + truth.sum().item(), 1)


def measured(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = model(x)[:, 0]
    loss = nn.functional.binary_cross_entropy_with_logits(logits, y).item()
    return {"loss": loss, "f1": f1_of(logits > 0, y > 0.5)}


torch.manual_seed(8)
x = torch.randn(400, 7)
y = (x[:, 0] * x[:, 1] > 0.4).float()
model = nn.Sequential(nn.Linear(7, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
plateau = ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
for epoch in range(settings.epochs):
    model.train()
    for rows in torch.randperm(300).split(50):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows])[:, 0], y[rows])
        loss.backward()
        optimizer.step()
    seen = measured(model, x[300:], y[300:])
    plateau.step(seen[settings.monitor])  # <- TL604
    print(epoch, seen)
