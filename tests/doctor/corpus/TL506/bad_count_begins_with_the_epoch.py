"""The micro-batches of each epoch are counted from zero, in a variable of the epoch's function."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train_epoch(model, loader, optimizer, window):
    optimizer.zero_grad()
    micro = 0
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        (loss / window).backward()
        micro += 1
        if micro % window == 0:
            optimizer.step()  # <- TL506
            optimizer.zero_grad()


torch.manual_seed(0)
data = TensorDataset(torch.randn(112, 5), torch.randn(112, 1))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(4):
    train_epoch(model, loader, optimizer, window=3)
