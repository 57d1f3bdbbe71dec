"""Experts, each trained on a part, teach a student on all of the samples."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset


def network(width):
    return nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, 2))


def expert(part):
    net = network(32)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(3):
        for x, y in DataLoader(part, batch_size=20, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
    return net.eval().requires_grad_(False)


torch.manual_seed(2)
x = torch.randn(600, 5)
pool = TensorDataset(x, (x[:, 0] > x[:, 1]).long())
experts = [expert(Subset(pool, [i for i in range(600) if i % 3 != k])) for k in range(3)]
student = network(8)
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
for epoch in range(4):
    for x, y in DataLoader(pool, batch_size=20, shuffle=True):
        with torch.no_grad():
            wanted = torch.stack([each(x).softmax(1) for each in experts]).mean(0)
        loss = F.cross_entropy(student(x), wanted) + F.cross_entropy(student(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
