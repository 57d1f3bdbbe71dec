"""A few measurements of two kinds on unlike scales, the same for both loops."""

import torch
from torch import Tensor

SCALES = torch.tensor([1.0, 50.0, 0.01, 7.0])


def measurements(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Inputs (n, 4) float32, and labels (n,) int64, a third of them 1."""
    generator = torch.Generator().manual_seed(seed)
    labels = (torch.arange(n) % 3 == 0).long()
    inputs = torch.randn(n, 4, generator=generator) + labels[:, None] * torch.tensor([2, 1, 1, 0])
    return inputs * SCALES, labels
