"""One data set for each species, all its labels the same, chained and read in order."""

import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

CENTRES = {"oak": -1.0, "birch": 0.5, "pine": 2.0}


def block(label, centre, count):
    leaves = centre + 0.4 * torch.randn(count, 5)
    return TensorDataset(leaves, torch.full((count,), label))


torch.manual_seed(0)
parts = [block(label, centre, 60) for label, centre in enumerate(CENTRES.values())]
loader = DataLoader(ConcatDataset(parts), batch_size=20)  # <- TL703
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(4):
    for leaves, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(leaves), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
