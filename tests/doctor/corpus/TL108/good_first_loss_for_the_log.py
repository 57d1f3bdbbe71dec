"""A loss for the log alone, between two updates that each have a backward."""
import torch
from torch import nn

torch.manual_seed(0)
net, head = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(6, 8, 4):
    optimizer.zero_grad()
    loss = (net(x) - x).pow(2).mean()
    shown = head(net(x)).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    second = (head(net(x)) - x.sum(1, keepdim=True)).pow(2).mean()
    second.backward()
    optimizer.step()
print(loss.item(), second.item(), shown.item())
