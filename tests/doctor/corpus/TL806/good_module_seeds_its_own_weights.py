"""Two networks are compared; the constructor of one of them seeds the weights that it draws."""
import torch
import torch.nn.functional as F
from torch import nn


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x)


class Stack(nn.Module):
    def __init__(self, sizes, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        pairs = zip(sizes, sizes[1:], strict=False)
        self.layers = nn.Sequential(*[nn.Linear(one, other) for one, other in pairs])

    def forward(self, x):
        return self.layers(x)


plain, stack = Plain(), Stack([4, 8, 2])
x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
for net in (plain, stack):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
