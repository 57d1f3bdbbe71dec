"""The cycle is told the samples of an epoch, and moves once per batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, count):
        self.first = torch.randn(count, 5)

    def __len__(self):
        return self.first.shape[0]

    def __getitem__(self, row):
        return self.first[row], self.first[row].sum()


torch.manual_seed(0)
PASSES = 4
pairs = Pairs(192)
batches = DataLoader(pairs, batch_size=16, shuffle=True)
network = nn.Linear(5, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
cycle = torch.optim.lr_scheduler.OneCycleLR(  # <- TL605
    optimizer, max_lr=0.2, epochs=PASSES, steps_per_epoch=len(pairs)
)
for number in range(PASSES):
    for rows, sums in batches:
        optimizer.zero_grad()
        error = nn.functional.mse_loss(network(rows).squeeze(1), sums)
        error.backward()
        optimizer.step()
        cycle.step()
    print(number, error.item(), cycle.get_last_lr())
