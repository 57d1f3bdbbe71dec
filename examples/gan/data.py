"""Points on a ring, the same for both loops."""

import torch
from torch import Tensor


def ring(n: int, seed: int) -> Tensor:
    """`n` points (n, 2) float32 at the distance 1 ± 0.1 from the origin."""
    generator = torch.Generator().manual_seed(seed)
    angle = 2 * torch.pi * torch.rand(n, generator=generator)
    radius = 1 + 0.1 * torch.randn(n, generator=generator)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
