"""The data and the networks of the five programs, the same in all libraries: no line counts."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce, cross_entropy

# ------------------------------------------------------------------------------- classifier


def textures(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Images (n, 1, 8, 8) float32 of stripes in four directions, and labels (n,) int64."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 4
    angle, phase = (label * np.pi / 4)[:, None, None], rng.uniform(0, 2 * np.pi, (n, 1, 1))
    y, x = np.mgrid[:8, :8]
    waves = np.sin(1.6 * (x * np.cos(angle) + y * np.sin(angle)) + phase)
    images = (waves + rng.normal(0, 0.9, (n, 8, 8)))[:, None].astype(np.float32)
    return torch.from_numpy(images), torch.from_numpy(label)


class ConvNet(nn.Module):
    """Logits (n, 4) of images (n, 1, 8, 8)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.body = nn.Sequential(
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(32, 4)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.body(self.stem(images)))


# ------------------------------------------------------------------------------- GAN

LATENT = 8


def ring(n: int, seed: int) -> Tensor:
    """Points (n, 2) float32 at the distance 1 ± 0.1 from the origin."""
    generator = torch.Generator().manual_seed(seed)
    angle = 2 * torch.pi * torch.rand(n, generator=generator)
    radius = 1 + 0.1 * torch.randn(n, generator=generator)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)


class Generator(nn.Sequential):
    """Points (n, 2) of noise (n, LATENT)."""

    def __init__(self) -> None:
        super().__init__(
            nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
        )


class Discriminator(nn.Sequential):
    """Logits (n, 1) that points (n, 2) are real."""

    def __init__(self) -> None:
        super().__init__(
            nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2),
            nn.Linear(64, 1),
        )  # fmt: skip


def real_or_fake_loss(on_real: Tensor, on_fake: Tensor) -> Tensor:
    return bce(on_real, torch.ones_like(on_real)) + bce(on_fake, torch.zeros_like(on_fake))


def fooling_loss(on_fake: Tensor) -> Tensor:
    return bce(on_fake, torch.ones_like(on_fake))


def mean_radius(generator: nn.Module) -> float:
    noise = torch.randn(1000, LATENT, generator=torch.Generator().manual_seed(7))
    with torch.inference_mode():
        return generator(noise).norm(dim=1).mean().item()


# ------------------------------------------------------------------------------- language model

LETTERS, CONTEXT, WIDTH = "abcdefghijklmnopqrstuvwxyz .", 32, 32
WORDS = ("the cat", "a dog", "my bird"), ("sees", "likes", "hears"), ("the sun", "a tree", "me")


def windows(sentences: int, seed: int) -> Tensor:
    """Windows of a text, (n, CONTEXT + 1) int64: each token and the one after it."""
    rng = np.random.default_rng(seed)
    text = ". ".join(" ".join(words[rng.integers(3)] for words in WORDS) for _ in range(sentences))
    tokens = torch.tensor([LETTERS.index(letter) for letter in text])
    return tokens.unfold(0, CONTEXT + 1, CONTEXT).clone()


class GPT(nn.Module):
    """Logits (n, length, letters) of the token after each of `tokens` (n, length)."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(len(LETTERS), WIDTH)
        self.place = nn.Embedding(CONTEXT, WIDTH)
        block = nn.TransformerEncoderLayer(
            WIDTH, nhead=4, dim_feedforward=2 * WIDTH, dropout=0.0, batch_first=True,
            norm_first=True, bias=False,
        )  # fmt: skip
        self.blocks = nn.TransformerEncoder(block, num_layers=2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(LETTERS), bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x, mask=mask, is_causal=True)))


def next_token_loss(logits: Tensor, tokens: Tensor) -> Tensor:
    return cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


# ------------------------------------------------------------------------------- fine-tuning


def pretrained() -> ConvNet:
    """A ConvNet after 30 updates with other labels."""
    images, labels = textures(256, seed=9)
    model = ConvNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        cross_entropy(model(images), labels.flip(0)).backward()
        optimizer.step()
    return model


# ------------------------------------------------------------------------------- table

TOWNS = 5


def houses(n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers (n, 3) float32, town (n,) int64, and prices (n,) float32, with outliers."""
    rng = np.random.default_rng(seed)
    area, age = rng.uniform(30, 200, n), rng.uniform(0, 80, n)
    rooms, town = np.round(area / 25 + rng.normal(0, 1, n)), rng.integers(0, TOWNS, n)
    price = area * (2 + 0.5 * town) * np.exp(-age / 120) * np.exp(rng.normal(0, 0.05, n))
    price[rng.random(n) < 0.02] *= 4
    numbers = torch.from_numpy(np.stack([area, age, rooms], axis=1)).float()
    return numbers, torch.from_numpy(town), torch.from_numpy(price).float()


class Prices(nn.Module):
    """Prices (n,) of numbers and town; it knows the training table's scale."""

    def __init__(self, numbers: Tensor, prices: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", numbers.mean(dim=0))
        self.register_buffer("std", numbers.std(dim=0))
        self.register_buffer("price", prices.median())
        self.town = nn.Embedding(TOWNS, 4)
        self.layers = nn.Sequential(
            nn.Linear(7, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
        )

    def forward(self, numbers: Tensor, town: Tensor) -> Tensor:
        numbers = (numbers - self.mean) / self.std
        scaled = self.layers(torch.cat([numbers, self.town(town)], dim=1))
        return self.price * (1 + scaled[:, 0])
