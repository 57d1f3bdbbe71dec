"""The first backward only weighs the two losses: its gradients are read, then cleared."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(6, 8, 4):
    optimizer.zero_grad()
    first = net(x)[:, 0].pow(2).mean()
    first.backward(retain_graph=True)
    size = sum(p.grad.norm() for p in net.parameters())
    optimizer.zero_grad()
    second = (net(x)[:, 1] - 1).pow(2).mean()
    (second + first / (1 + size)).backward()
    optimizer.step()
print(first.item(), second.item())
