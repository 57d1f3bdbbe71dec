import torch
from torch.nn import BatchNorm2d, Conv2d, Module, ReLU

BN_MOMENTUM = 0.01


class Basic(Module):
    def __init__(self, planes):
        super().__init__()
        self.conv = Conv2d(planes, planes, 3, padding=1)
        self.norm = BatchNorm2d(planes, BN_MOMENTUM)  # <- TL310
        self.act = ReLU()

    def forward(self, x):
        return x + self.act(self.norm(self.conv(x)))


print(Basic(4)(torch.randn(2, 4, 6, 6)).mean())
