"""A student learns from a deep copy of the network that was trained first, left in train mode."""

import copy

import torch
from torch import nn
from torch.nn import functional as F


def network(width):
    return nn.Sequential(nn.Linear(6, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 3))


def batches(x, y, size=32):
    for rows in torch.randperm(len(x)).split(size):
        yield x[rows], y[rows]


torch.manual_seed(3)
torch.set_num_threads(1)
x = torch.randn(256, 6)
y = x[:, :3].argmax(dim=1)

large = network(48)
optimizer = torch.optim.Adam(large.parameters(), lr=1e-2)
for epoch in range(3):
    for inputs, labels in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(large(inputs), labels).backward()
        optimizer.step()

guide = copy.deepcopy(large).requires_grad_(False)
small = network(8)
optimizer = torch.optim.Adam(small.parameters(), lr=1e-2)
for epoch in range(3):
    for inputs, _ in batches(x, y):
        with torch.no_grad():
            wanted = guide(inputs).softmax(dim=1)  # <- TL208
        loss = F.kl_div(small(inputs).log_softmax(dim=1), wanted, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
