"""The second argument of these is something else."""

import torch
from torch import nn

layers = nn.Sequential(
    nn.Linear(8, 8),
    nn.LazyBatchNorm1d(1e-5, 0.8),
    nn.Dropout(0.8),
    nn.LeakyReLU(0.2),
    nn.LayerNorm(8, 1e-5),
    nn.Threshold(0.1, 0.5),
)
print(layers(torch.randn(4, 8)).shape)
