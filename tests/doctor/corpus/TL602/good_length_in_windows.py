"""Four micro-batches make an update; the schedule is as long as there are updates."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--window", type=int, default=4)
parser.add_argument("--epochs", type=int, default=4)
args = parser.parse_args()

torch.manual_seed(0)
x = torch.randn(512, 4)
loader = DataLoader(TensorDataset(x, x[:, :1] * x[:, 1:2]), batch_size=8, shuffle=True, drop_last=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
schedule = torch.optim.lr_scheduler.LinearLR(
    optimizer, 1.0, 0.1, total_iters=args.epochs * len(loader) // args.window
)
for epoch in range(args.epochs):
    for i, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets)
        (loss / args.window).backward()
        if (i + 1) % args.window:
            continue
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    print(epoch, loss.item(), schedule.get_last_lr())
