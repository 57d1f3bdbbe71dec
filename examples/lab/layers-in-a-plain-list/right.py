"""Layers in a list, right: the list is an `nn.ModuleList`.

A network with three layers in a list learns a spiral of three arms; then its state is loaded into a
fresh network, as after a restart.
"""

import json
import math
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 64)
        self.hidden = nn.ModuleList([nn.Linear(64, 64) for _ in range(3)])
        self.last = nn.Linear(64, 3)

    def forward(self, x):
        x = torch.relu(self.first(x))
        for layer in self.hidden:
            x = x + torch.relu(layer(x))
        return self.last(x)


t, y = torch.rand(1200), torch.randint(0, 3, (1200,))
angle = 2 * math.pi * (0.75 * t + y / 3)
x = torch.stack([t * angle.cos(), t * angle.sin()], 1) + 0.03 * torch.randn(1200, 2)
model = Network()
before = [layer.weight.detach().clone() for layer in model.hidden]
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for _ in range(300):
    batch = torch.randint(0, 600, (64,))
    loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

loaded = Network()
loaded.load_state_dict(model.state_dict())
with torch.no_grad():
    after = [layer.weight for layer in model.hidden]
    moved = max((a - b).abs().max().item() for a, b in zip(after, before, strict=True))
    right = [(net(x[600:]).argmax(1) == y[600:]).float().mean().item() for net in (model, loaded)]
print(
    json.dumps(
        {
            "parameters": sum(p.numel() for p in model.parameters()),
            "moved": moved,
            "accuracy": right[0],
            "loaded_accuracy": right[1],
            "saved": len(model.state_dict()),
            "loss": losses,
        }
    )
)
