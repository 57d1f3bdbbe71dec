from contextlib import contextmanager

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


@contextmanager
def as_in_use(network):
    network.eval()
    before = {part: part.training for part in network.modules()}
    try:
        with torch.no_grad():
            yield network
    finally:
        for part, mode in before.items():
            part.training = mode


def accuracy(network, batches):
    with as_in_use(network) as quiet:
        right = sum((quiet(x).argmax(1) == y).sum().item() for x, y in batches)
    return right / len(batches.dataset)


torch.manual_seed(0)
data = TensorDataset(torch.randn(48, 4), torch.randint(0, 3, (48,)))
network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for epoch in range(2):
    for number, (x, y) in enumerate(DataLoader(data, batch_size=8, shuffle=True)):
        optimizer.zero_grad()
        F.cross_entropy(network(x), y).backward()  # <- TL201
        optimizer.step()
        if number % 3 == 0:
            print(accuracy(network, DataLoader(data, batch_size=16)))
