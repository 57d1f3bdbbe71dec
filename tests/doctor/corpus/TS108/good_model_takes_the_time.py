"""Fetched one by one, and nothing to gain: the model takes all the time."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(960, 64, 384), torch.randint(0, 4, (960,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
for sequences, labels in loader:
    scores = model(sequences).mean(1)
    loss = nn.functional.cross_entropy(scores, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
