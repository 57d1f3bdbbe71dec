import torch
from torch import nn


class BatchNorm2d(nn.BatchNorm2d):
    """With the order of arguments of another framework."""

    def __init__(self, num_features, momentum=0.9, eps=1e-5):
        super().__init__(num_features, eps=eps, momentum=1 - momentum)


net = nn.Sequential(nn.Conv2d(1, 4, 3), BatchNorm2d(4, 0.8), nn.ReLU())
print(net(torch.randn(2, 1, 6, 6)).shape)
