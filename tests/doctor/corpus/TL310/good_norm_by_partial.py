"""EfficientNet's norm: both numbers are named when it is prepared."""

import functools

import torch
from torch import nn

norm_layer = functools.partial(nn.BatchNorm2d, eps=0.01, momentum=0.2)
make_layer = functools.partial(nn.Conv2d, 3)


def stem(width):
    return nn.Sequential(make_layer(width, 3), norm_layer(width), nn.SiLU())


torch.manual_seed(0)
model = nn.Sequential(stem(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(3):
    images, labels = torch.randn(8, 3, 10, 10), torch.randint(0, 4, (8,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
