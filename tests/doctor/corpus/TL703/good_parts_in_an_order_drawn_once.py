"""The parts come class by class; the rows are then drawn in an order of their own, once."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def mineral(number, count):
    spectrum = torch.randn(count, 12)
    spectrum[:, 3 * number] += 2
    return spectrum, torch.full((count,), number)


def samples(count):
    parts = [mineral(number, count) for number in range(4)]
    spectra, kinds = torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])
    order = torch.randperm(len(kinds))
    return TensorDataset(spectra[order], kinds[order])


def feed(data, size, mixed=False):
    return DataLoader(data, batch_size=size, shuffle=mixed)


net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 4))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
batches = feed(samples(60), 24)
for epoch in range(3):
    for spectrum, kind in batches:
        loss = nn.functional.cross_entropy(net(spectrum), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
