"""Recording is turned on in so many words for the training, and never off for the test."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train_loader = DataLoader(TensorDataset(torch.randn(64, 3), torch.randn(64, 1)), 16, shuffle=True)
test_loader = DataLoader(TensorDataset(torch.randn(32, 3), torch.randn(32, 1)), 16)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
mse = nn.MSELoss()
for epoch in range(2):
    net.train()
    with torch.enable_grad():
        for x, y in train_loader:
            optimizer.zero_grad()
            mse(net(x), y).backward()
            optimizer.step()
    net.eval()
    total = 0.0
    for x, y in test_loader:
        total += mse(net(x), y).item()  # <- TL203
    print(epoch, total / len(test_loader))
