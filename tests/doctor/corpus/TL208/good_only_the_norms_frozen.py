"""Scale and shift of the batch norms are fixed, everything else learns; a norm comes first."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def build():
    return nn.Sequential(
        nn.BatchNorm1d(6, affine=False),
        nn.Linear(6, 10),
        nn.BatchNorm1d(10),
        nn.ReLU(),
        nn.Linear(10, 3),
    )


first = build()
first(torch.randn(40, 6))
torch.save(first.state_dict(), "first.pt")
model = build()
model.load_state_dict(torch.load("first.pt", weights_only=True))
for layer in model.modules():
    if isinstance(layer, nn.BatchNorm1d):
        layer.requires_grad_(False)
optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.05)
for step in range(12):
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
    model.train()
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
