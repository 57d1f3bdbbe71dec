"""Without `--train` the program only tests; what the other options add has its own backward."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--train", action="store_true")
parser.add_argument("--half", action="store_true")
parser.add_argument("--adversarial", action="store_true")
args = parser.parse_args(["--train"])


def train(net, data):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    for inputs, targets in DataLoader(data, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), targets)
        if args.half:
            scaler.scale(loss).backward()
        else:
            print(loss.item())
        if args.adversarial:
            moved = inputs + 0.01 * torch.randn_like(inputs)
            nn.functional.cross_entropy(net(moved), targets).backward()
        optimizer.step()  # <- TL108


def main():
    net = nn.Linear(4, 2)
    if args.train:
        train(net, TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,))))
    net.eval()
    with torch.no_grad():
        print(net(torch.randn(1, 4)))


main()
