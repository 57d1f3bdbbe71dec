import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(n):
    x = torch.cat([torch.randn(n, 3) + shift for shift in (-2.0, 0.0, 2.0)])
    y = torch.cat([torch.full((n,), c) for c in range(3)])
    order = torch.randperm(len(x))
    return x[order], y[order]


x, y = make_data(60)
train = DataLoader(TensorDataset(x[:120], y[:120]), batch_size=30)
val = DataLoader(TensorDataset(x[120:], y[120:]), batch_size=30)
net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    for a, b in train:
        opt.zero_grad()
        nn.functional.cross_entropy(net(a), b).backward()
        opt.step()
