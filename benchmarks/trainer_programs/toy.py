"""What the programs of this folder have in common: small data that are made up, and the end."""

from __future__ import annotations

import sys

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

KINDS = 3
FEATURES = 8


def samples(count: int, seed: int) -> TensorDataset:
    """Features (count, 8), the kind of each sample (count,), and its size (count,)."""
    generator = torch.Generator().manual_seed(seed)
    kinds = torch.randint(KINDS, (count,), generator=generator)
    features = torch.randn(count, FEATURES, generator=generator)
    features[:, :KINDS] += 2 * nn.functional.one_hot(kinds, KINDS)
    sizes: Tensor = features[:, 4:].mean(1)
    return TensorDataset(features, kinds, sizes)


def finish(model: nn.Module) -> None:
    """Save the weights where the command line says."""
    if len(sys.argv) > 1:
        torch.save(model.state_dict(), sys.argv[1])
