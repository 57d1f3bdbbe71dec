"""The 20 best of 2000 features are chosen on all samples, before the split: wrong.

All features are noise and the labels are coins: nothing can be learned. 100 samples are drawn 20
times, a quarter of them for validation.
"""

import json
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


def best_features(x, y):
    """The 20 columns that correlate most with the label."""
    x = (x - x.mean(0)) / x.std(0)
    return (x.T @ (y - y.mean())).abs().topk(20).indices


scores, fresh_scores = [], []
for _ in range(20):
    x, y = torch.randn(100, 2000), torch.randint(0, 2, (100,)).float()
    fresh_x, fresh_y = torch.randn(1000, 2000), torch.randint(0, 2, (1000,)).float()
    chosen = best_features(x, y)
    x, fresh_x = x[:, chosen], fresh_x[:, chosen]
    model = nn.Linear(20, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(50):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[:75]).squeeze(1), y[:75])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        scores.append(((model(x[75:]).squeeze(1) > 0) == y[75:]).float().mean().item())
        fresh_scores.append(((model(fresh_x).squeeze(1) > 0) == fresh_y).float().mean().item())
print(
    json.dumps(
        {
            "validation": sum(scores) / 20,
            "fresh": sum(fresh_scores) / 20,
            "scores": sorted(scores),
        }
    )
)
