"""Samples come over a network, through a loader that every epoch makes for itself."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Remote(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.randn(16), index % 2


def loader(epoch):
    torch.manual_seed(epoch)
    return DataLoader(Remote(), batch_size=8, shuffle=True)  # <- TS101


model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(7):
    for samples, labels in loader(epoch):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(samples), labels)
        loss.backward()
        optimizer.step()
print(loss.item())
