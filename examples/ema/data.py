"""A noisy checkerboard, the same for both loops."""

import torch
from torch import Tensor


def checkerboard(n: int, seed: int, flipped: float = 0.0) -> tuple[Tensor, Tensor]:
    """`n` points (n, 2) float32 of 2 x 2 fields, labels (n,) int64, a share of them `flipped`."""
    generator = torch.Generator().manual_seed(seed)
    points = 2 * torch.rand(n, 2, generator=generator) - 1
    labels = (points[:, 0] * points[:, 1] > 0).long()
    wrong = torch.rand(n, generator=generator) < flipped
    return points, torch.where(wrong, 1 - labels, labels)
