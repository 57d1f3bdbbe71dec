import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
# Barlow Twins: features are compared over the batch; here there are as many as samples.
loader = DataLoader(TensorDataset(torch.randn(128, 6)), 16, shuffle=True)
encoder = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 16))
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
for epoch in range(4):
    for i, (x,) in enumerate(loader):
        one, other = (encoder(x + 0.1 * torch.randn_like(x)) for _ in range(2))
        one = (one - one.mean(0)) / (one.std(0) + 1e-5)
        other = (other - other.mean(0)) / (other.std(0) + 1e-5)
        correlation = one.T @ other / len(x)
        loss = (correlation - torch.eye(16)).square().sum()
        (loss / 2).backward()
        if i % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
