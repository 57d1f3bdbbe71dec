"""The file of a block tests its shapes: the block sets its last layer to zero as it is made, but
nothing trains it, and nothing is scored."""

import torch
from torch import nn


def silent(layer):
    with torch.no_grad():
        for weights in layer.parameters():
            weights.mul_(0)
    return layer


class Block(nn.Module):
    def __init__(self, width, wide, drop=0.1):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, wide), nn.GELU(), nn.Dropout(drop))
        self.last = silent(nn.Linear(wide, width))

    def forward(self, x):
        return x + self.last(self.inner(x))


def test_shapes():
    for width in (4, 8):
        x = torch.randn(2, width)
        for wide in (8, 16):
            block = Block(width, wide)
            out = block(x)
            assert out.shape == x.shape, out.shape
    print("the shapes are right")


if __name__ == "__main__":
    test_shapes()
