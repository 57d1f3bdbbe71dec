"""A stream that takes long to open, and then gives its batches at once."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        time.sleep(0.5)
        for index in range(70):
            yield torch.full((256, 384), index / 70), torch.full((256,), index % 4)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
for inputs, labels in DataLoader(Stream(), batch_size=None):
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
