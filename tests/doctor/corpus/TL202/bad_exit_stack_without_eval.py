"""The stack enters `no_grad` alone: dropout stays on."""
from contextlib import ExitStack

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, loader):
    correct = 0
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()  # <- TL202
    return correct


data = TensorDataset(torch.randn(48, 4), torch.randint(0, 3, (48,)))
train, val = DataLoader(data, 4, shuffle=True), DataLoader(data, 8)
model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(evaluate(model, val))
