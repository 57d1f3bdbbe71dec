"""`dict()` makes a second dictionary of the very same tensors."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(96, 4)
y = (x[:, 0] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
lowest, kept = float("inf"), {}
for epoch in range(4):
    total = 0.0
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(net(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if total < lowest:
        lowest = total
        kept = dict(net.state_dict())  # <- TL805
net.load_state_dict(kept)
