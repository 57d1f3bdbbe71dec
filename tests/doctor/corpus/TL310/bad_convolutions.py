import torch
from torch import nn

net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1, bias=False),
    nn.BatchNorm2d(8, 0.1),  # <- TL310
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(8, 10),
)
print(net(torch.randn(2, 3, 8, 8)).shape)
