"""`set_grad_enabled(True)` around a test pass, as a block and as a decorator."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train_loader = DataLoader(TensorDataset(torch.randn(64, 3), torch.randn(64, 1)), 16, shuffle=True)
test_loader = DataLoader(TensorDataset(torch.randn(32, 3), torch.randn(32, 1)), 16)
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
mse = nn.MSELoss()
for x, y in train_loader:
    optimizer.zero_grad()
    mse(net(x), y).backward()
    optimizer.step()
net.eval()
with torch.set_grad_enabled(True):
    for x, y in test_loader:
        print(mse(net(x), y).item())
