"""The tables of a rotary embedding are buffers: the optimizer never had them."""
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.reset()

    def reset(self):
        angles = torch.outer(torch.arange(8.0), 0.1 ** torch.arange(self.size))
        self.cos = nn.Buffer(angles.cos(), persistent=False)
        self.sin = nn.Buffer(angles.sin(), persistent=False)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary(4)
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x) * self.rotary.cos + x * self.rotary.sin


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):  # warm-up
    net(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
net.rotary.reset()
for x in torch.randn(6, 8, 4):
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(loss.item())
