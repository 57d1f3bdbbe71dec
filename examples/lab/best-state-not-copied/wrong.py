"""The best state, wrong: it is kept without a copy.

A network overfits noisy labels. The state of the epoch with the lowest validation loss is kept and
loaded at the end.
"""

import json
import math
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
x = torch.randn(400, 10)
y = (x[:, 0] + x[:, 1] + torch.randn(400) > 0).long()
train_x, train_y, val_x, val_y = x[:100], y[:100], x[100:], y[100:]
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def validate():
    model.eval()
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(val_x), val_y).item()
    model.train()
    return loss


best, best_loss = None, math.inf
curve = []
for _ in range(100):
    for batch in torch.randperm(100).split(25):
        loss = nn.functional.cross_entropy(model(train_x[batch]), train_y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    curve.append(validate())
    if curve[-1] < best_loss:
        best, best_loss = model.state_dict(), curve[-1]

model.load_state_dict(best)
print(
    json.dumps(
        {
            "best": best_loss,
            "last": curve[-1],
            "loaded": validate(),
            "best_epoch": curve.index(best_loss) + 1,
            "val_loss": curve,
        }
    )
)
