"""The head alone for some steps, then the whole model with an optimizer of its own."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def run(optimizer, steps):
    for _ in range(steps):
        x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


print(run(torch.optim.Adam(model[2].parameters(), lr=1e-2), 4))
print(run(torch.optim.Adam(model.parameters(), lr=1e-3), 4))
