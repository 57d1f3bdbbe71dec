import torch
import torch.nn.functional as F
from torch import nn


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(6, 12)
        self.classes = nn.Linear(12, 3)
        self.value = nn.Linear(12, 1)

    def forward(self, x):
        hidden = torch.tanh(self.trunk(x))
        return self.classes(hidden), self.value(hidden)


torch.manual_seed(0)
net = Both()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(6):
    x, label, value = torch.randn(8, 6), torch.randint(0, 3, (8,)), torch.randn(8, 1)
    optimizer.zero_grad()
    F.cross_entropy(net(x)[0], label).backward()
    optimizer.step()
    optimizer.zero_grad()
    F.mse_loss(net(x)[1], value).backward()
    optimizer.step()
