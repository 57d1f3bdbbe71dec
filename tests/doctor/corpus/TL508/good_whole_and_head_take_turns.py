"""One optimizer has all of the model, the other the head; they step on every other batch."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(96, 6)
Y = (X.sum(1) > 0).long()
loader = DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True)

a, b = nn.Linear(6, 4), nn.Linear(4, 2)
o1 = torch.optim.SGD(list(a.parameters()) + list(b.parameters()), lr=0.1)
o2 = torch.optim.Adam(b.parameters())
for epoch in range(4):
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(b(a(x)), y)
        o1.zero_grad()
        o2.zero_grad()
        loss.backward()
        if i % 2 == 0:
            o1.step()
        else:
            o2.step()
