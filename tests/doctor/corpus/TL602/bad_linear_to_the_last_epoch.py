"""A linear decay to the last epoch, asked after every batch."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--keep", type=int, default=2, help="epochs at the first rate")
args = parser.parse_args()

torch.manual_seed(0)
data = TensorDataset(torch.randn(96, 4), torch.randint(0, 2, (96,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer,
    lr_lambda=lambda e: 1.0 - max(0, e - args.keep) / float(args.epochs - args.keep)
    if e < args.epochs
    else 0.0,
)
for epoch in range(args.epochs):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()  # <- TL602
    print(epoch, loss.item())
