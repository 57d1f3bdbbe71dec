"""Noisy copies of eight prototypes, the same for both loops; labels only score the result."""

import torch
from torch import Tensor

CLASSES = 8


def samples(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Inputs (n, 32) float32: a prototype in the first half, noise in the other; labels (n,)."""
    prototypes = torch.randn(CLASSES, 16, generator=torch.Generator().manual_seed(99))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % CLASSES
    signal = prototypes[labels] + 0.7 * torch.randn(n, 16, generator=generator)
    return torch.cat([signal, 2 * torch.randn(n, 16, generator=generator)], dim=1), labels


def view(inputs: Tensor) -> Tensor:
    """What the encoder shall not see: the second half drawn anew, the first with some noise."""
    signal = inputs[:, :16] + 0.3 * torch.randn(len(inputs), 16)
    return torch.cat([signal, 2 * torch.randn(len(inputs), 16)], dim=1)


def neighbour_accuracy(embedded: Tensor, labels: Tensor) -> float:
    """How often the nearest other sample, by cosine similarity, is of the same class."""
    similarity = embedded @ embedded.T
    similarity.fill_diagonal_(-2.0)
    return (labels[similarity.argmax(dim=1)] == labels).float().mean().item()
