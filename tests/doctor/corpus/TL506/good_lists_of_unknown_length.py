"""Lists filled under a condition, and from a file: how long they are, nobody can tell."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows, labels = [], []
for i in range(90):
    x = torch.randn(4)
    if x[0] > -1:
        rows.append(x)
        labels.append(i % 3)
for line in open(__file__):
    if "=" not in line:
        continue
    rows.append(torch.full((4,), float(len(line))))
    labels.append(0)
loader = DataLoader(TensorDataset(torch.stack(rows), torch.tensor(labels)), 11, shuffle=True)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        (nn.functional.cross_entropy(model(x), y) / 2).backward()
        if (i + 1) % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
