import torch
from torch import nn

torch.manual_seed(3)
bend, drop = nn.ReLU(), nn.Dropout(0.1)
left = nn.Sequential(nn.Linear(6, 8), bend, drop, nn.Linear(8, 2))
right = nn.Sequential(nn.Linear(6, 8), bend, drop, nn.Linear(8, 2))
first = torch.optim.SGD(left.parameters(), lr=0.05)
second = torch.optim.SGD(right.parameters(), lr=0.05)
for _ in range(8):
    x = torch.randn(16, 6)
    first.zero_grad()
    second.zero_grad()
    nn.functional.cross_entropy(left(x) + right(x), (x[:, 0] > 0).long()).backward()
    first.step()
    second.step()
