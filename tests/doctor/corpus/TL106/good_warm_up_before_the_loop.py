"""A few backwards before training, whose gradients nobody wants."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):  # the first passes are slow
    net(torch.randn(8, 4)).mean().backward()
    optimizer.zero_grad()
for x in torch.randn(6, 8, 4):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
print(loss.item())
