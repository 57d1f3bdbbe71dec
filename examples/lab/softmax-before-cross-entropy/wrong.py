"""Softmax before cross-entropy, wrong: the loss gets probabilities.

The same small classifier is trained on 3 and on 100 clusters of points with SGD, and tested on
points it has not seen.
"""

import json
import math
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
loss_fn = nn.CrossEntropyLoss()


def train(classes, updates=400):
    """The loss at each update, and the share of test points that are named rightly."""
    centres = torch.randn(classes, 8)
    y = torch.randint(0, classes, (3000,))
    x = centres[y] + 0.3 * torch.randn(3000, 8)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    losses = []
    for _ in range(updates):
        batch = torch.randint(0, 2000, (64,))
        logits = model(x[batch])
        loss = loss_fn(logits.softmax(1), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        right = model(x[2000:]).argmax(1) == y[2000:]
    return losses, right.float().mean().item()


few_loss, few_accuracy = train(3)
many_loss, many_accuracy = train(100)
print(
    json.dumps(
        {
            "few_accuracy": few_accuracy,
            "many_accuracy": many_accuracy,
            "few_lowest": min(few_loss),
            "few_floor": math.log(1 + 2 / math.e),
            "few_loss": few_loss,
            "many_last": sum(many_loss[-20:]) / 20,
        }
    )
)
