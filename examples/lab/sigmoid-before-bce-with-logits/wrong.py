"""Sigmoid before BCE-with-logits, wrong: the loss gets probabilities.

The same small network is trained on two problems: as many positives as negatives with clear
labels, and positives that are rare and never certain.
"""

import json
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
loss_fn = nn.BCEWithLogitsLoss()


def ranking(scores, y):
    """The share of pairs in which the positive scores above the negative (area under the ROC)."""
    gap = scores[y == 1][:, None] - scores[y == 0]
    return ((gap > 0).float().mean() + 0.5 * (gap == 0).float().mean()).item()


def train(bias, scale, updates=400):
    x = torch.randn(4000, 4)
    true = torch.sigmoid(bias + scale * (x[:, 0] - x[:, 1] + x[:, 2] / 2))
    y = torch.bernoulli(true)
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(updates):
        batch = torch.randint(0, 2000, (64,))
        logits = model(x[batch]).squeeze(1)
        loss = loss_fn(torch.sigmoid(logits), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        scores, y = model(x[2000:]).squeeze(1), y[2000:]
    accuracy = ((scores > 0) == (y == 1)).float().mean().item()
    return losses, accuracy, ranking(scores, y), y.mean().item()


clear_loss, clear_accuracy, _, _ = train(bias=0.0, scale=8.0)
rare_loss, _, rare_ranking, rare_share = train(bias=-3.0, scale=1.0)
print(
    json.dumps(
        {
            "clear_accuracy": clear_accuracy,
            "clear_last": sum(clear_loss[-20:]) / 20,
            "clear_loss": clear_loss,
            "rare_share": rare_share,
            "rare_ranking": rare_ranking,
            "rare_last": sum(rare_loss[-20:]) / 20,
        }
    )
)
