"""Random changes of whole batches that leave an image what it is.

Each function is of a batch of images and of uniform random numbers in [0, 1), and nothing else: the
same numbers give the same images, so `Feed` can make the numbers a function of the sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Draws = Callable[[int], Tensor]
"""`draws(k)`: float32 (batch, k), uniform in [0, 1), one row for each sample."""


def shift(images: Tensor, reach: tuple[int, int], across: Tensor, down: Tensor) -> Tensor:
    """Each image moved by up to `reach` whole pixels (vertically, horizontally), mirrored at its
    edge.

    `images` (N, C, H, W) of any dtype; `across` and `down` uniform numbers (N,).
    """
    height, width = images.shape[2:]
    rows = _moved(height, reach[0], down)[:, None, :, None].expand(-1, images.shape[1], -1, width)
    columns = _moved(width, reach[1], across)[:, None, None, :].expand(-1, *images.shape[1:3], -1)
    return images.gather(2, rows).gather(3, columns)


def _moved(size: int, reach: int, draws: Tensor) -> Tensor:
    """From which position each of `size` comes, int64 (N, size), mirrored into 0 … size - 1."""
    offset = (draws * (2 * reach + 1)).long() - reach
    positions = torch.arange(size, device=draws.device) + offset[:, None]
    return (size - 1) - ((size - 1) - positions.abs()).abs()


def flip(images: Tensor, draws: Tensor) -> Tensor:
    """Each image mirrored left to right with probability 1/2; `draws` uniform numbers (N,)."""
    return torch.where((draws < 0.5)[:, None, None, None], images.flip(3), images)


def warp(images: Tensor, degrees: float, scale: float, reach: float, draws: Tensor) -> Tensor:
    """Each image turned by up to `degrees`, scaled by up to a factor of 1 ± `scale` and moved by up
    to `reach` of its side, its edge continued.

    `images` (N, C, H, W), uint8 or floating point, and returned so; `draws` uniform (N, 4).
    """
    angle, zoom, x, y = (2 * draws - 1).unbind(dim=1)
    angle = angle * math.radians(degrees)
    zoom = 1 + scale * zoom
    ratio = images.shape[2] / images.shape[3]
    cos, sin = angle.cos() / zoom, angle.sin() / zoom
    # Output to input, in coordinates from -1 to 1; without the ratio oblong images would be skewed.
    matrix = torch.stack(
        (cos, -sin * ratio, 2 * reach * x, sin / ratio, cos, 2 * reach * y), dim=1
    ).view(-1, 2, 3)
    grid = F.affine_grid(matrix, list(images.shape), align_corners=False)
    pixels = images if images.is_floating_point() else images.float()
    moved = F.grid_sample(pixels, grid, padding_mode="border", align_corners=False)
    return moved if images.is_floating_point() else moved.round().to(images.dtype)


@dataclass(frozen=True)
class Augment:
    """A `transform` for `Feed`: (images, labels) with the images changed at random.

    Photographs are shifted by whole pixels, which keeps them sharp, and mirrored if `mirror`;
    drawings and writing (`warp`) are turned, scaled and moved a little, and never mirrored.
    """

    warp: bool
    mirror: bool

    def __call__(self, batch: tuple[Tensor, Tensor], draws: Draws) -> tuple[Tensor, Tensor]:
        images, labels = batch
        if self.warp:
            images = warp(images, 10.0, 0.1, 0.06, draws(4))
        else:
            across, down = draws(2).unbind(dim=1)
            reach = (max(1, images.shape[2] // 8), max(1, images.shape[3] // 8))
            images = shift(images, reach, across, down)
        if self.mirror:
            images = flip(images, draws(1)[:, 0])
        return images, labels
