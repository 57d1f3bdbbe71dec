import math

import torch
from torch import nn

START, LOW, RATE = 1.0, 0.5, 0.003
torch.manual_seed(0)
net = nn.Linear(4, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
temperature = START
for step in range(8):
    x = torch.randn(6, 4)
    loss = (torch.softmax(net(x) / temperature, dim=1) - torch.softmax(x, dim=1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    temperature = max(START * math.exp(-RATE * step), LOW)
