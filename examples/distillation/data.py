"""A spiral of three arms and a teacher that has learned it, the same for both loops."""

import numpy as np
import torch
from torch import Tensor, nn


def spiral(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """`n` points of three arms: inputs (n, 2) float32, labels (n,) int64."""
    rng = np.random.default_rng(seed)
    arm = np.arange(n) % 3
    radius = rng.uniform(0.15, 1.0, n)
    angle = 2 * np.pi * (0.6 * radius + arm / 3)
    points = radius * np.stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.05, (2, n))
    return torch.from_numpy(points.T.astype(np.float32)), torch.from_numpy(arm)


def trained_teacher() -> nn.Module:
    """A wide network after 150 updates with 960 points, in eval mode."""
    inputs, labels = spiral(960, seed=2)
    teacher = nn.Sequential(
        nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)
    )
    optimizer = torch.optim.Adam(teacher.parameters(), lr=1e-2)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(teacher(inputs), labels).backward()
        optimizer.step()
    return teacher.eval()
