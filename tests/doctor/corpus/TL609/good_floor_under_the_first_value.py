import math

import torch
from torch import nn

START, LOW = 1.0, 0.01
torch.manual_seed(0)
net = nn.Linear(3, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
noise = START
for step in range(40):
    x = torch.randn(8, 3)
    noise = LOW + (START - LOW) * math.exp(-step / 10)
    optimizer.zero_grad()
    (net(x + noise * torch.randn_like(x)) - x).pow(2).mean().backward()
    optimizer.step()
    noise = LOW + (noise - LOW) * 0.99
