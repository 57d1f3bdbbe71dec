"""(N, 1) against (N,) in the mean squared error, right: both have the shape (N,).

A network learns a linear teacher with a little noise.
"""

import json
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
loss_fn = nn.MSELoss()
x = torch.randn(1500, 5)
y = x @ torch.tensor([2.0, -1.0, 0.5, 1.0, -2.0]) + 3 + 0.1 * torch.randn(1500)
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for _ in range(400):
    batch = torch.randint(0, 1000, (64,))
    predicted = model(x[batch]).squeeze(1)
    loss = loss_fn(predicted, y[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

with torch.no_grad():
    predicted, y = model(x[1000:]).squeeze(1), y[1000:]
explained = 1 - (predicted - y).square().mean() / y.var()
print(
    json.dumps(
        {
            "explained": explained.item(),
            "spread": (predicted.std() / y.std()).item(),
            "mean_predicted": predicted.mean().item(),
            "mean_target": y.mean().item(),
            "last": sum(losses[-20:]) / 20,
            "variance": y.var().item(),
            "loss": losses,
        }
    )
)
