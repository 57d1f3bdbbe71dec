"""Draws: functions of (seed, epoch, sample index, column), with the right distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from trueloop.feed import Draws
from trueloop.seed import mix

INDICES = np.array([5, 0, 17, 10**12], dtype=np.int64)


def test_uniform_numbers_are_those_of_the_definition() -> None:
    numbers = Draws(3, 4, INDICES)(2)
    expected = [
        [(mix(3, 4, i, column) >> 40) / 2**24 for column in range(2)] for i in INDICES.tolist()
    ]
    assert numbers.dtype == torch.float32
    assert numbers.tolist() == expected


def test_a_sample_draws_the_same_in_any_batch() -> None:
    together, alone = Draws(3, 4, INDICES), Draws(3, 4, INDICES[2:3])
    for k in (1, 3):
        assert torch.equal(together(k)[2:3], alone(k))
        assert torch.equal(together.normal(k)[2:3], alone.normal(k))


def test_every_draw_is_fresh_and_every_key_counts() -> None:
    draws = Draws(3, 4, INDICES)
    numbers = torch.cat([draws(3), draws(3), draws.normal(3), draws.normal(1), draws(1)], dim=1)
    others = [Draws(2, 4, INDICES)(3), Draws(3, 5, INDICES)(3), Draws(3, 4, INDICES + 1)(3)]
    values = torch.cat([numbers.flatten(), *(other.flatten() for other in others)])
    assert len(values.unique()) == len(values)


def test_fewer_columns_are_the_first_of_more() -> None:
    for k in (1, 2, 3, 5):
        assert torch.equal(Draws(0, 0, INDICES)(k), Draws(0, 0, INDICES)(6)[:, :k])
        assert torch.equal(Draws(0, 0, INDICES).normal(k), Draws(0, 0, INDICES).normal(6)[:, :k])


def test_distributions() -> None:
    draws = Draws(1, 2, np.arange(20_000))
    uniform, normal = draws(3).double().numpy(), draws.normal(3).double().numpy()
    assert uniform.min() >= 0
    assert uniform.max() < 1
    for column in range(3):
        assert stats.kstest(uniform[:, column], "uniform").pvalue > 1e-4
        assert stats.kstest(normal[:, column], "norm").pvalue > 1e-4
    # Columns among themselves, and the two kinds of draw against each other.
    correlations = np.corrcoef(np.concatenate([uniform, normal], axis=1).T) - np.eye(6)
    assert np.abs(correlations).max() < 5 / np.sqrt(20_000)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_shapes(k: int) -> None:
    draws = Draws(1, 2, INDICES)
    assert draws(k).shape == draws.normal(k).shape == (4, k)
    assert draws.indices.tolist() == INDICES.tolist()
