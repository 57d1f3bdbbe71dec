"""Each fold makes its loaders where it uses them, and all train the same network."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def folds(count, rows):
    blocks = torch.randperm(rows).chunk(count)
    for number, block in enumerate(blocks):
        others = torch.cat([each for i, each in enumerate(blocks) if i != number])
        yield others.tolist(), block.tolist()


def errors(net, loader):
    net.eval()
    with torch.no_grad():
        return sum((net(a).squeeze(1) - b).abs().sum().item() for a, b in loader)


torch.manual_seed(3)
x = torch.randn(150, 5)
data = TensorDataset(x, x[:, 0] - x[:, 1])
net = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for others, block in folds(5, 150):
    for epoch in range(2):
        net.train()
        for a, b in DataLoader(Subset(data, others), batch_size=24, shuffle=True):
            optimizer.zero_grad()
            nn.functional.mse_loss(net(a).squeeze(1), b).backward()
            optimizer.step()
    print(errors(net, DataLoader(Subset(data, block), batch_size=30)) / len(block))  # <- TL705
