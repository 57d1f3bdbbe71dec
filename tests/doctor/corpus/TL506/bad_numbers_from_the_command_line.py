"""With the numbers that the options have by themselves, two batches of each epoch are left over."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--gather", default=3, type=int, help="batches per update")
parser.add_argument("--epochs", type=int, default=4)


def train(options):
    torch.manual_seed(0)
    inputs = torch.randn(128, 5)
    data = TensorDataset(inputs, inputs[:, :2].argmax(1))
    net = nn.Linear(5, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(options.epochs):
        optimizer.zero_grad()
        for count, (x, y) in enumerate(DataLoader(data, options.batch_size, shuffle=True), 1):
            loss = nn.functional.cross_entropy(net(x), y) / options.gather
            loss.backward()
            if count % options.gather == 0:
                optimizer.step()  # <- TL506
                optimizer.zero_grad()


if __name__ == "__main__":
    train(parser.parse_args([]))
