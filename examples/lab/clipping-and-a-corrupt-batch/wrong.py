"""One batch of a run is corrupt, wrong: gradients are clipped, and that is all.

Its inputs are 10,000 times too large, or so large that the gradient overflows. With SGD and with
Adam; the smaller corruption also without clipping, for comparison.
"""

import json
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0


def train(kind, lr, corrupt, max_norm):
    """Trains for 200 updates, the 100th on a corrupt batch; the losses on clean data."""
    torch.manual_seed(seed)
    x = torch.randn(512, 8)
    y = torch.tanh(x @ torch.randn(8, 1) / 2)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = kind(model.parameters(), lr=lr)
    losses = []
    for update in range(200):
        chosen = torch.randint(0, len(x), (64,))
        inputs = x[chosen] * (corrupt if update == 100 else 1.0)
        loss = nn.functional.mse_loss(model(inputs), y[chosen])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        with torch.no_grad():
            losses.append(nn.functional.mse_loss(model(x), y).item())
    return losses


sgd, adam = torch.optim.SGD, torch.optim.Adam
curve = train(sgd, 0.05, 1e4, 1.0)
figures = {
    "before": curve[99],
    "sgd_unclipped": train(sgd, 0.05, 1e4, float("inf"))[-1],
    "sgd_huge": curve[-1],
    "adam_unclipped": train(adam, 0.01, 1e4, float("inf"))[-1],
    "adam_huge": train(adam, 0.01, 1e4, 1.0)[-1],
    "sgd_infinite": train(sgd, 0.05, 1e25, 1.0)[-1],
    "adam_infinite": train(adam, 0.01, 1e25, 1.0)[-1],
}
print(json.dumps({**figures, "loss": curve}))
