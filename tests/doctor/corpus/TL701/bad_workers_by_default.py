"""A generator of the data set's own, which two workers copy unless an option says otherwise."""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class MaskedCopies(Dataset):
    def __init__(self, count, length, seed):
        self.rows = torch.randn(count, length)
        self.rng = random.Random(seed)  # <- TL701

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        masked = row.clone()
        masked[self.rng.sample(range(len(row)), 2)] = 0.0
        return masked, row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--num_workers", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = MaskedCopies(320, 6, args.seed)
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=args.num_workers)
    net = nn.Linear(6, 6)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(2):
        for masked, row in loader:
            loss = (net(masked) - row).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
