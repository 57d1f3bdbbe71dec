"""A convolutional classifier whose norm is an argument, prepared with its settings."""

from functools import partial

import torch
from torch import nn


class ConvNorm(nn.Module):
    def __init__(self, c_in, c_out, norm_layer, decay):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, 3, padding=1, bias=False)
        self.bn = norm_layer(c_out, decay)  # <- TL310

    def forward(self, x):
        return self.bn(self.conv(x)).relu()


class Net(nn.Module):
    def __init__(self, norm_layer=None):
        super().__init__()
        norm_layer = norm_layer or partial(nn.BatchNorm2d, track_running_stats=True)
        self.body = nn.Sequential(
            ConvNorm(3, 8, norm_layer, 0.05),
            ConvNorm(8, 8, norm_layer, 0.05),
        )
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(3):
    images, labels = torch.randn(8, 3, 10, 10), torch.randint(0, 4, (8,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
