"""Weights as a constructor leaves them, however few they are, and weights that look trained."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from trueloop.doctor.live.probes.parameter_stats import looks_fresh


@pytest.mark.parametrize("rows", [12, 40, 1_000])
def test_embeddings_of_any_size_look_fresh(rows: int) -> None:
    torch.manual_seed(rows)
    assert all(looks_fresh(nn.Embedding(rows, 4)) for _ in range(60))


@pytest.mark.parametrize("spread", [0.02, 0.4, 2.5])
def test_weights_with_tails_look_trained(spread: float) -> None:
    torch.manual_seed(0)
    layer = nn.Embedding(200, 16)
    with torch.no_grad():
        layer.weight.normal_(std=spread)
    assert not looks_fresh(layer)
