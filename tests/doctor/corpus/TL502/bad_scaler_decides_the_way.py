"""A path to the data is needed to train at all; loss scaling takes a way of its own."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--data", default=None)
parser.add_argument("--precision", default="fp32")
parser.add_argument("--every", type=int, default=1)
parser.add_argument("--shard", action="store_true")
args = parser.parse_args(["--data", "here", "--precision", "fp16"])

loaders = {}
if args.data:
    rows = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
    loaders["train"] = DataLoader(rows, batch_size=8, shuffle=True)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = None
wants_scaler = args.precision == "fp16"
if args.shard:
    wants_scaler = False
if wants_scaler:
    scaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())


def plain_step(inputs, targets):
    nn.functional.cross_entropy(net(inputs), targets).backward()
    optimizer.step()


def scaled_step(inputs, targets):
    loss = nn.functional.cross_entropy(net(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # <- TL502


def main():
    if "train" not in loaders:
        return
    by_hand = args.every > 1 or scaler is not None
    for _ in range(3):
        for inputs, targets in loaders["train"]:
            optimizer.zero_grad()
            if by_hand:
                scaled_step(inputs, targets)
            else:
                plain_step(inputs, targets)


main()
