"""A small residual network, as deep as the images' size asks for.

This file needs only torch, so that a trained model can go where Trueloop is not installed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ResidualBlock(nn.Module):
    """Two convolutions around which the input is added (He, Zhang, Ren and Sun, CVPR 2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.skip(x))


class ResNet(nn.Module):
    """Raw images (N, channels, height, width), uint8 or float from 0 to 255, to class logits.

    A stem at full resolution, then one block per stage, each stage halving the side and doubling
    the channels until about four pixels a side are left: three stages for 28 and 32 pixels, with
    `width`, 2 `width` and 4 `width` channels. Images of 96 pixels and more are halved in the stem.

    Batches of channels-last images and weights (`.to(memory_format=torch.channels_last)`) are
    faster on a CPU. A run's `task.json` has the arguments under `network`.

    Args:
        channels: 1 for grey, 3 for colour.
        size: height and width in pixels.
        classes: logits of each image.
        width: channels of the first stage, 2 or more.
        mean: of the training images, one number per channel, of pixels from 0 to 1. It travels
            with the weights.
        std: standard deviation, likewise.
    """

    def __init__(
        self,
        channels: int,
        size: Sequence[int],
        classes: int,
        *,
        width: int,
        mean: list[float],
        std: list[float],
    ) -> None:
        super().__init__()
        self.register_buffer("mean", 255 * torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("std", 255 * torch.tensor(std).view(-1, 1, 1))
        self.mean: Tensor
        self.std: Tensor
        large = min(size) >= 96
        features = width // 2
        parts: list[nn.Module] = [
            nn.Conv2d(channels, features, 3, 2 if large else 1, padding=1, bias=False),
            nn.BatchNorm2d(features),
            nn.ReLU(),
        ]
        side = -(-min(size) // 2) if large else min(size)
        stage_width = width
        while side > 4 or features < width:
            parts.append(ResidualBlock(features, stage_width, stride=2))
            features, side = stage_width, -(-side // 2)
            stage_width = min(2 * stage_width, 8 * width)
        self.features = nn.Sequential(*parts)
        self.classify = nn.Linear(features, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = (images.float() - self.mean) / self.std
        # Convolutions on a CPU, and half-precision ones on a GPU, are faster in this layout.
        x = self.features(x.contiguous(memory_format=torch.channels_last))
        logits: Tensor = self.classify(x.mean(dim=(2, 3)))
        return logits
