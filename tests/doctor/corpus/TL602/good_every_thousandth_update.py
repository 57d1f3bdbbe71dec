"""The rate falls once in so many updates, which the loop counts itself."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--falls_every", type=int, default=50)
args = parser.parse_args()


def read(path):
    for _ in range(20):
        x = torch.randn(16, 4)
        yield x, x[:, :1] * x[:, 1:2]


torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
updates = 0
for epoch in range(args.epochs):
    for x, y in read("train"):
        updates += 1
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if updates % args.falls_every == 0:
            scheduler.step()
    print(epoch, loss.item(), scheduler.get_last_lr())
