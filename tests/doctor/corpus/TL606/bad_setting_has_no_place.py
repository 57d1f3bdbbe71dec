"""The schedule should move per batch, and the only place that moves it is that of the epochs."""

from argparse import Namespace

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

options = Namespace(epochs=5, rate=0.05, anneal=Namespace(every="batch", gamma=0.7))


def main():
    torch.manual_seed(0)
    x = torch.randn(96, 6)
    loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=12, shuffle=True)
    network = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
    optimizer = torch.optim.Adam(network.parameters(), lr=options.rate)
    annealing = torch.optim.lr_scheduler.ExponentialLR(optimizer, options.anneal.gamma)  # <- TL606
    for epoch in range(options.epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(network(inputs), labels)
            loss.backward()
            optimizer.step()
        if options.anneal.every == "epoch":
            annealing.step()
        print(epoch, loss.item())


main()
