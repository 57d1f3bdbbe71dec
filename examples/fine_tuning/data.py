"""Small grey images of four textures, and a network that was trained with others, the same for both
loops."""

import numpy as np
import torch
from torch import Tensor, nn


def textures(n: int, seed: int, turned: float = 0.0) -> tuple[Tensor, Tensor]:
    """`n` images (n, 1, 8, 8) float32 of stripes in four directions, and labels (n,) int64."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 4
    angle = turned + (label * np.pi / 4)[:, None, None]
    phase = rng.uniform(0, 2 * np.pi, (n, 1, 1))
    y, x = np.mgrid[:8, :8]
    waves = np.sin(1.6 * (x * np.cos(angle) + y * np.sin(angle)) + phase)
    images = (waves + rng.normal(0, 0.9, (n, 8, 8)))[:, None].astype(np.float32)
    return torch.from_numpy(images), torch.from_numpy(label)


class ConvNet(nn.Module):
    """Logits (n, 4) of images (n, 1, 8, 8)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.body = nn.Sequential(
            nn.Conv2d(16, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(32, 4)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.body(self.stem(images)))


def pretrained() -> ConvNet:
    """A network that knows stripes in other directions, with a new head."""
    images, labels = textures(256, seed=9, turned=np.pi / 8)
    model = ConvNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(40):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    model.head.reset_parameters()
    return model
