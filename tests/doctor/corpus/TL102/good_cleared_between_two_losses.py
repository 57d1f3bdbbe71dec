"""Two updates an iteration, cleared before each: by the module, and by hand."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(6, 8, 4):
    net.zero_grad()
    loss = (net(x) - x).pow(2).mean()
    loss.backward()
    optimizer.step()
    for p in net.parameters():
        p.grad = None
    second = (net(-x) + x).pow(2).mean()
    second.backward()
    optimizer.step()
print(loss.item(), second.item())
