"""Only without a scaler there are windows; with one, each batch is an update."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--data", default=None)
parser.add_argument("--precision", default="fp32")
parser.add_argument("--every", type=int, default=1)
args = parser.parse_args(["--data", "here"])

rows = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
loader = DataLoader(rows, batch_size=8, shuffle=True) if args.data else None
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda") if args.precision == "fp16" else None


def main():
    if loader is None:
        return
    by_hand = args.every > 1 or scaler is not None
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), targets)
        if by_hand and scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()


main()
