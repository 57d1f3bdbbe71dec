"""Two clusters of points, the same for both loops."""

import torch
from torch import Tensor


def clusters(n: int, seed: int) -> Tensor:
    """`n` points (n, 2) float32 around (2, 0) and (-2, 0)."""
    generator = torch.Generator().manual_seed(seed)
    side = 2.0 * (torch.arange(n) % 2) - 1.0
    points = 0.2 * torch.randn(n, 2, generator=generator)
    points[:, 0] += 2 * side
    return points
