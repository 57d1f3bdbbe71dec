"""A table of houses, the same for both loops: numbers, a category, and a price with outliers."""

import numpy as np
import torch
from torch import Tensor, nn

TOWNS = 5


def houses(n: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
    """Columns `numbers` (n, 3) float32 and `town` (n,) int64; prices (n,) float32."""
    rng = np.random.default_rng(seed)
    area, age = rng.uniform(30, 200, n), rng.uniform(0, 80, n)
    rooms, town = np.round(area / 25 + rng.normal(0, 1, n)), rng.integers(0, TOWNS, n)
    price = area * (2 + 0.5 * town) * np.exp(-age / 120) * np.exp(rng.normal(0, 0.05, n))
    price[rng.random(n) < 0.02] *= 4
    numbers = np.stack([area, age, rooms], axis=1)
    columns = {"numbers": torch.from_numpy(numbers).float(), "town": torch.from_numpy(town)}
    return columns, torch.from_numpy(price).float()


class Network(nn.Module):
    """Prices (n,) of the columns; it knows the training table's scale."""

    def __init__(self, columns: dict[str, Tensor], prices: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", columns["numbers"].mean(dim=0))
        self.register_buffer("std", columns["numbers"].std(dim=0))
        self.register_buffer("price", prices.median())
        self.town = nn.Embedding(TOWNS, 4)
        self.layers = nn.Sequential(
            nn.Linear(7, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
        )

    def forward(self, numbers: Tensor, town: Tensor) -> Tensor:
        numbers = (numbers - self.mean) / self.std
        scaled = self.layers(torch.cat([numbers, self.town(town)], dim=1))
        return self.price * (1 + scaled[:, 0])
