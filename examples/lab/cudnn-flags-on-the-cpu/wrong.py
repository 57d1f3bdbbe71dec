"""A repeatable run on the CPU, without the two cuDNN flags.

A small convolutional network learns to tell horizontal from vertical stripes, twice from the same
seed.
"""

import json
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0


def train():
    """The loss of each update, and the weights at the end."""
    torch.manual_seed(seed)
    y = torch.randint(0, 2, (256,))
    stripes = (torch.arange(8) % 4 < 2).float().expand(256, 1, 8, 8)
    x = torch.where(y[:, None, None, None] == 1, stripes, stripes.mT) + torch.randn(256, 1, 8, 8)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(72, 2),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(60):
        batch = torch.randint(0, 256, (32,))
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, torch.cat([p.detach().flatten() for p in model.parameters()])


losses, weights = train()
losses_again, weights_again = train()
print(
    json.dumps(
        {
            "apart": (weights - weights_again).abs().max().item(),
            "size": weights.double().square().sum().sqrt().item(),
            "last": losses[-1],
            "loss": losses,
        }
    )
)
