"""Each class has a prototype: a mean of its samples, weighted by attention over the batch."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(160, 6), torch.randint(0, 3, (160,)))
loader = DataLoader(data, batch_size=32, shuffle=True)
encoder, attention = nn.Linear(6, 12), nn.Linear(6, 3)
optimizer = torch.optim.Adam([*encoder.parameters(), *attention.parameters()], lr=1e-2)
for epoch in range(4):
    for x, y in loader:
        weights = torch.softmax(attention(x), dim=0) * F.one_hot(y, 3)
        weights = weights / weights.sum(dim=0).clamp(min=1e-6)
        codes = encoder(x)
        prototypes = weights.t() @ codes
        loss = F.cross_entropy(-torch.cdist(codes, prototypes), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
