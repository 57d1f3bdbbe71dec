import torch
from torch import nn


def normed(channels, eps=1e-3):
    return nn.Sequential(nn.BatchNorm2d(channels, eps), nn.SiLU(), nn.BatchNorm2d(channels, 1e-5))


print(normed(4)(torch.randn(2, 4, 3, 3)).mean())
