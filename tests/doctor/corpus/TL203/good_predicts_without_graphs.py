"""Predictions with recording off, for the loop or by the frozen weights; one picture at a time."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3)).eval()
loader = DataLoader(TensorDataset(torch.randn(40, 6)), batch_size=8)
with torch.inference_mode():
    for (x,) in loader:
        print(net(x).argmax(dim=1).tolist())
with torch.no_grad():
    print(sum(net(x).sum().item() for (x,) in loader))
print(net(torch.randn(1, 6)).argmax(dim=1).item())
net.requires_grad_(False)
for (x,) in loader:
    print(net(x).argmax(dim=1).tolist())
