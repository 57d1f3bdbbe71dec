"""Three interleaved arms, the same for both loops."""

import numpy as np
import torch
from torch import Tensor


def spiral(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """`n` points of three arms: inputs (n, 2) float32, targets (n,) int64."""
    rng = np.random.default_rng(seed)
    arm = np.arange(n) % 3
    radius = rng.uniform(0.15, 1.0, n)
    angle = 2 * np.pi * (1.25 * radius + arm / 3)
    points = radius * np.stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.035, (2, n))
    return torch.from_numpy(points.T.astype(np.float32)), torch.from_numpy(arm)
