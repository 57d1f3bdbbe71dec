# Only process 0 validates, in the middle of an epoch, and nothing turns train mode on again.
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def validate(network, batches):
    network.eval()
    wrong = 0
    with torch.no_grad():
        for points, sides in batches:
            wrong += (network(points).argmax(1) != sides).sum().item()
    return wrong


def one_epoch(rank, network, optimizer, batches, held_out, report):
    if report is not None:
        print(report)
    network.train()
    for number, (points, sides) in enumerate(batches):
        loss = nn.functional.cross_entropy(network(points), sides)  # <- TL201
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            if number % 3 == 2:
                print(number, validate(network, held_out))


def main():
    rank = int(os.environ.get("RANK", "0"))
    if rank == 0:
        print("writes the log")
    torch.manual_seed(5)
    points = torch.randn(240, 6)
    sides = (points.sum(1) > 0).long()
    batches = DataLoader(TensorDataset(points[:192], sides[:192]), batch_size=16, shuffle=True)
    held_out = DataLoader(TensorDataset(points[192:], sides[192:]), batch_size=16)
    network = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    for epoch in range(2):
        if rank == 0:
            one_epoch(rank, network, optimizer, batches, held_out, f"epoch {epoch}")
        else:
            one_epoch(rank, network, optimizer, batches, None, None)


if __name__ == "__main__":
    main()
