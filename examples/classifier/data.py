"""Small grey images of four textures, the same for both loops."""

import numpy as np
import torch
from torch import Tensor


def textures(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """`n` images (n, 1, 8, 8) float32 of stripes in four directions, and labels (n,) int64."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 4
    angle = (label * np.pi / 4)[:, None, None]
    phase = rng.uniform(0, 2 * np.pi, (n, 1, 1))
    y, x = np.mgrid[:8, :8]
    waves = np.sin(1.6 * (x * np.cos(angle) + y * np.sin(angle)) + phase)
    images = (waves + rng.normal(0, 0.9, (n, 8, 8)))[:, None].astype(np.float32)
    return torch.from_numpy(images), torch.from_numpy(label)
