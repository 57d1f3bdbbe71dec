"""UniformDraws: the target distribution, and a function of (seed, row, position)."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy import stats

from trueloop.generate.sampling import UniformDraws, sample, streams
from trueloop.generate.strategies import min_p, temperature, top_k, top_p, typical

CPU = torch.device("cpu")
DRAWS = 100_000


def uniforms(seed: int) -> torch.Tensor:
    """10^5 numbers as `generate` draws them: 100 rows, 1000 positions."""
    draws = UniformDraws(streams(seed, 100, 1), CPU)
    return torch.cat([draws.at(position) for position in range(DRAWS // 100)])


LOGITS = 2 * torch.randn(40, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "strategy",
    [
        lambda scores: scores,
        lambda scores: temperature(scores, 0.5),
        lambda scores: top_k(scores, 5),
        lambda scores: top_p(scores, 0.8),
        lambda scores: min_p(scores, 0.1),
        lambda scores: typical(scores, 0.7),
    ],
)
def test_frequencies_lie_within_the_binomial_bounds(strategy) -> None:
    """10^5 draws of each distribution; each token's count within bounds that a right sampler
    leaves once in 10^7 tokens."""
    scores = strategy(LOGITS[None])
    probabilities = scores.double().softmax(-1)[0].numpy()
    drawn = sample(scores.expand(DRAWS, -1), uniforms(3))
    counts = torch.bincount(drawn, minlength=40).numpy()
    low = stats.binom.ppf(5e-8, DRAWS, probabilities)
    high = stats.binom.isf(5e-8, DRAWS, probabilities)
    assert (low <= counts).all()
    assert (counts <= high).all()
    assert not counts[probabilities == 0].any()
    chi_square = (counts - DRAWS * probabilities)[probabilities > 0] ** 2
    kept = probabilities[probabilities > 0]
    assert stats.chi2.sf((chi_square / (DRAWS * kept)).sum(), len(kept) - 1) > 1e-6


def test_the_numbers_are_uniform_and_rows_and_positions_independent() -> None:
    draws = UniformDraws(streams(0, 300, 1), CPU)
    numbers = torch.stack([draws.at(position) for position in range(200)]).numpy()
    assert stats.kstest(numbers.ravel(), "uniform").pvalue > 1e-4
    assert abs(stats.pearsonr(numbers[:, :-1].ravel(), numbers[:, 1:].ravel()).statistic) < 0.02
    assert abs(stats.pearsonr(numbers[:-1].ravel(), numbers[1:].ravel()).statistic) < 0.02


def test_a_rows_numbers_do_not_depend_on_the_other_rows() -> None:
    together = UniformDraws(streams([7, 8, 9], 3, 2), CPU)
    alone = UniformDraws(streams(8, 1, 2), CPU)
    for position in (0, 1, 63, 64, 200):
        assert torch.equal(together.at(position)[2:4], alone.at(position))
    together.select([3, 0])
    assert torch.equal(together.at(201)[:1], alone.at(201)[1:])
    assert torch.equal(together.at(300)[:1], alone.at(300)[1:])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.floats(-(2.0**120), 2.0**120, width=32)
        | st.sampled_from([math.inf, -math.inf, 0.0, 1.0]),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([0.0, 2.0**-52, 0.3, 0.5, 1 - 2.0**-52]),
)
def test_a_token_that_is_ruled_out_is_never_drawn(scores: list[float], uniform: float) -> None:
    drawn = int(sample(torch.tensor([scores]), torch.tensor([uniform], dtype=torch.float64)))
    assert scores[drawn] > -math.inf or max(scores) == -math.inf
    if max(scores) == math.inf:
        assert scores[drawn] == math.inf
