"""By default each update takes one batch; and a run that asks for more has no tail of its own."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--gather", default=1, type=int, help="batches per update")
parser.add_argument("--pairs", default=2, type=int)
parser.add_argument("--rows", type=int, default=None)


def train(options, window):
    torch.manual_seed(0)
    inputs = torch.randn(options.rows or 96, 5)
    data = TensorDataset(inputs, inputs[:, :2].argmax(1))
    net = nn.Linear(5, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        for count, (x, y) in enumerate(DataLoader(data, options.batch_size, shuffle=True), 1):
            loss = nn.functional.cross_entropy(net(x), y) / window
            loss.backward()
            if count % window == 0:
                optimizer.step()
                optimizer.zero_grad()


if __name__ == "__main__":
    given = parser.parse_args([])
    train(given, given.gather)
    train(given, given.pairs)
