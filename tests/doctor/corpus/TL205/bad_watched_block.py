import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self, width=6, depth=3):
        super().__init__()
        self.block = nn.Sequential(*[nn.Linear(width, width) for _ in range(depth)])

    def forward(self, x):
        h = self.block.forward(x)  # <- TL205
        return h + x


class Range:
    def __init__(self, module):
        self.low, self.high = 0.0, 0.0
        module.register_forward_pre_hook(self.look)

    def look(self, module, inputs):
        self.low, self.high = inputs[0].min().item(), inputs[0].max().item()


torch.manual_seed(1)
stack = Stack()
seen = Range(stack.block)
optimizer = torch.optim.Adam(stack.parameters())
for _ in range(6):
    x = torch.randn(10, 6)
    optimizer.zero_grad()
    (stack(x) - x.flip(1)).pow(2).mean().backward()
    optimizer.step()
print(seen.low, seen.high)
