"""The function draws the beginning of a schedule: the network in it is thrown away, and only the
learning rates are kept."""

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset


def rates_of(schedule_for, epochs):
    x, y = torch.rand(64, 5), torch.randint(0, 3, (64,))
    loader = DataLoader(TensorDataset(x, y), batch_size=16)
    toy = nn.Linear(5, 3)
    optimizer = torch.optim.Adam(toy.parameters(), lr=0.01)
    schedule = schedule_for(optimizer)
    rates = []
    for epoch in range(epochs):
        rates.append(schedule.get_last_lr()[0])
        for inputs, classes in loader:
            optimizer.zero_grad()
            out = toy(inputs)
            loss = nn.functional.cross_entropy(out, classes)
            loss.backward()
            optimizer.step()
        schedule.step()
    return rates


torch.manual_seed(0)
for rate in rates_of(lambda optimizer: CosineAnnealingLR(optimizer, T_max=50), 15):
    print("#" * round(1000 * rate))
