"""An actor that stands in for a module passes each of its calls on, `forward` among them."""
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * self.scale


class Actor:
    def __init__(self, *args):
        self.module = Scaled(*args)

    def forward(self, x):
        if x is None:
            return None
        return self.module.forward(x)

    def parameters(self):
        return self.module.parameters()


torch.manual_seed(0)
actor = Actor(4)
optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    loss = actor.forward(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.step()
