"""The order: a bijection at every size, reached at any position, and as good a shuffle as torch's.

Each statistic is computed for both mechanisms and for `torch.randperm`, with the same threshold on
its p-value; the seeds are fixed, so a test passes always or never. That the statistics can tell a
bad shuffle is a test of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy import stats

from trueloop.feed.order import ROUNDS, TABLE_SIZE, Feistel, SampleOrder, sorted_hashes
from trueloop.feed.parts import RankShare, portion
from trueloop.seed import mix

Permutation = Callable[[int, int, int], np.ndarray]
"""(size, seed, epoch) -> a permutation of 0 … size - 1"""

P_VALUE = 1e-4


def feistel(size: int, seed: int, epoch: int) -> np.ndarray:
    return Feistel(size, seed, epoch)(np.arange(size))


def randperm(size: int, seed: int, epoch: int) -> np.ndarray:
    generator = torch.Generator().manual_seed(mix(seed, epoch) >> 1)
    return torch.randperm(size, generator=generator).numpy()


def rotated(size: int, seed: int, epoch: int) -> np.ndarray:
    """A bad shuffle: the start is random, the order is not."""
    return np.roll(np.arange(size), mix(seed, epoch) % size)


def buffered(size: int, seed: int, epoch: int) -> np.ndarray:
    """A bad shuffle: blocks of 100 samples, each shuffled in place."""
    blocks = range(0, size, 100)
    return np.concatenate(
        [b + randperm(min(100, size - b), seed, epoch * len(blocks) + b) for b in blocks]
    )


def constant(size: int, seed: int, epoch: int) -> np.ndarray:
    """A bad shuffle: a good order, the same in every epoch."""
    return randperm(size, 0, 0)


GOOD = [sorted_hashes, feistel, randperm]


# Bijection


@pytest.mark.parametrize("permute", [sorted_hashes, feistel])
def test_every_size_up_to_2000_is_permuted(permute: Permutation) -> None:
    for size in range(1, 2001):
        seen = np.zeros(size, dtype=bool)
        seen[permute(size, 3, size)] = True
        assert seen.all(), size


@pytest.mark.parametrize("size", [TABLE_SIZE - 1, TABLE_SIZE, TABLE_SIZE + 1, 300_007, 1 << 20])
def test_large_sizes_are_permuted(size: int) -> None:
    indices = SampleOrder(size, 1, 2).at(np.arange(size))
    assert np.array_equal(np.sort(indices), np.arange(size))


def inverse(size: int, seed: int, epoch: int, index: int) -> int:
    """The position of `index`, by the definition of the network, in exact integers."""
    a = math.isqrt(size - 1) + 1
    b = -(-size // a)
    assert a * b >= size

    def scaled(value: int, number: int, modulus: int) -> int:
        return (mix(mix(seed, epoch, 0x6F72646572, number), value) * modulus) >> 64

    while True:
        left, right = divmod(index, b)
        for number in reversed(range(ROUNDS)):
            if number % 2 == 0:
                left = (left - scaled(right, number, a)) % a
            else:
                right = (right - scaled(left, number, b)) % b
        index = left * b + right
        if index < size:
            return index


@settings(max_examples=150, deadline=None)
@given(
    exponent=st.floats(0, 12),
    seed=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 10**6),
    places=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20),
)
def test_any_size_up_to_1e12_is_inverted(
    exponent: float, seed: int, epoch: int, places: list[float]
) -> None:
    size = max(1, int(10**exponent))
    positions = np.array([int(place * size) for place in places])
    indices = Feistel(size, seed, epoch)(positions)
    assert indices.dtype == np.int64
    for position, index in zip(positions.tolist(), indices.tolist(), strict=True):
        assert 0 <= index < size
        assert inverse(size, seed, epoch, index) == position


@pytest.mark.parametrize("size", [10**12, 2**40 + 1, 2**62])
def test_windows_of_huge_orders_hold_no_index_twice(size: int) -> None:
    order = SampleOrder(size, 5, 6)
    for start in (0, size // 3, size - 50_000):
        window = order.span(start, start + 50_000)
        assert len(np.unique(window)) == 50_000
        assert window.min() >= 0
        assert window.max() < size


# The same order wherever and however it is computed


@pytest.mark.parametrize("size", [1, 1000, TABLE_SIZE + 1])
@pytest.mark.parametrize("shuffle", [False, True])
def test_at_span_and_batches_agree(size: int, shuffle: bool) -> None:
    order = SampleOrder(size, 7, 8, shuffle)
    whole = order.at(np.arange(size))
    assert np.array_equal(order.span(0, size), whole)
    for width in (7, 64, 9000):
        taken = portion(RankShare(), width, size // 2, size)
        batches = list(order.batches(taken.stretches))
        assert np.array_equal(np.concatenate(batches), whole[size // 2 :])
        assert {len(batch) for batch in batches[:-1]} <= {width}
    assert order.at([[0], [size - 1]]).tolist() == [[whole[0]], [whole[-1]]]
    if not shuffle:
        assert np.array_equal(whole, np.arange(size))


def test_orders_are_what_they_were_in_earlier_versions() -> None:
    # A changed order would break the exact resume of every run on disk.
    assert SampleOrder(10, 0, 0).span(0, 10).tolist() == [8, 0, 5, 2, 9, 6, 7, 3, 4, 1]
    assert SampleOrder(10**9, 1, 2).span(0, 4).tolist() == [
        515775367,
        789659152,
        197641362,
        987857502,
    ]


def test_order_depends_on_seed_epoch_and_size() -> None:
    orders = [
        SampleOrder(*key).span(0, 50).tolist() for key in [(100, 0, 0), (100, 0, 1), (100, 1, 0)]
    ]
    orders += [SampleOrder(10**6, *key).span(0, 50).tolist() for key in [(0, 0), (0, 1), (1, 0)]]
    assert len({tuple(order) for order in orders}) == 6
    assert (
        SampleOrder(100, 4, 5).span(0, 100).tolist() == SampleOrder(100, 4, 5).span(0, 100).tolist()
    )


# Statistics: each returns a p-value


def correlation(permute: Permutation) -> float:
    """Position against index: √(n-1)·r is standard normal over many epochs."""
    size = 2000
    scores = [
        np.corrcoef(np.arange(size), permute(size, 11, epoch))[0, 1] * math.sqrt(size - 1)
        for epoch in range(300)
    ]
    return float(stats.kstest(scores, "norm").pvalue)


def chi_square(observed: np.ndarray, expected: np.ndarray) -> float:
    """Counts against expected counts, cells below 5 pooled from both ends."""
    while len(expected) > 2 and expected[0] < 5:
        observed = np.concatenate(([observed[0] + observed[1]], observed[2:]))
        expected = np.concatenate(([expected[0] + expected[1]], expected[2:]))
    while len(expected) > 2 and expected[-1] < 5:
        observed = np.concatenate((observed[:-2], [observed[-2] + observed[-1]]))
        expected = np.concatenate((expected[:-2], [expected[-2] + expected[-1]]))
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, len(expected) - 1))


def class_counts(permute: Permutation, labels: np.ndarray, batch: int) -> float:
    """Samples of class 0 in one batch of 64, over many epochs: hypergeometric."""
    size, epochs = len(labels), 1000
    place = slice(batch * 64, batch * 64 + 64)
    counts = [int((labels[permute(size, 12, epoch)[place]] == 0).sum()) for epoch in range(epochs)]
    law = stats.hypergeom(size, int((labels == 0).sum()), 64)
    return chi_square(np.bincount(counts, minlength=65), law.pmf(np.arange(65)) * epochs)


def neighbours(permute: Permutation) -> float:
    """Pairs of neighbouring samples that stay neighbours: Poisson with mean 2."""
    size, epochs = 2000, 1000
    counts = [
        int((np.abs(np.diff(permute(size, 13, epoch))) == 1).sum()) for epoch in range(epochs)
    ]
    law = stats.poisson(2 * (size - 1) / size).pmf(np.arange(max(counts) + 20)) * epochs
    return chi_square(np.bincount(counts, minlength=len(law)), law)


def coincidences(permute: Permutation, keys: list[tuple[int, int]]) -> float:
    """Positions that hold one sample in two orders: Poisson with mean 1."""
    orders = [permute(2000, seed, epoch) for seed, epoch in keys]
    counts = [int((one == two).sum()) for one, two in pairwise(orders)]
    law = stats.poisson(1).pmf(np.arange(max(counts) + 20)) * len(counts)
    return chi_square(np.bincount(counts, minlength=len(law)), law)


def dependence(permute: Permutation, keys: list[tuple[int, int]]) -> float:
    """Index against index at the same position of two orders: no correlation."""
    orders = [permute(2000, seed, epoch) for seed, epoch in keys]
    scores = [np.corrcoef(one, two)[0, 1] * math.sqrt(1999) for one, two in pairwise(orders)]
    return float(stats.kstest(scores, "norm").pvalue)


def places(permute: Permutation) -> float:
    """Every sample stands at every position equally often."""
    size, epochs = 20, 4000
    table = np.zeros((size, size))
    for epoch in range(epochs):
        table[np.arange(size), permute(size, 14, epoch)] += 1
    statistic = float(((table - epochs / size) ** 2 / (epochs / size)).sum())
    # Rows and columns have fixed sums, and 1 - 1/size of the variance is left to each cell.
    return float(stats.chi2.sf(statistic * (size - 1) / size, (size - 1) ** 2))


EPOCHS = [(15, epoch) for epoch in range(400)]
SEEDS = [(seed, 3) for seed in range(400)]


@pytest.mark.parametrize("permute", GOOD)
class TestShuffle:
    def test_index_does_not_follow_position(self, permute: Permutation) -> None:
        assert correlation(permute) > P_VALUE

    @pytest.mark.parametrize("batch", [0, 15])
    @pytest.mark.parametrize("sort", [True, False])
    def test_class_counts_per_batch(self, permute: Permutation, batch: int, sort: bool) -> None:
        labels = np.arange(2000) % 3
        assert class_counts(permute, np.sort(labels) if sort else labels, batch) > P_VALUE

    def test_neighbours_do_not_stay_together(self, permute: Permutation) -> None:
        assert neighbours(permute) > P_VALUE

    @pytest.mark.parametrize("keys", [EPOCHS, SEEDS])
    def test_epochs_and_seeds_are_independent(
        self, permute: Permutation, keys: list[tuple[int, int]]
    ) -> None:
        assert coincidences(permute, keys) > P_VALUE
        assert dependence(permute, keys) > P_VALUE

    def test_every_sample_comes_at_every_position(self, permute: Permutation) -> None:
        assert places(permute) > P_VALUE


def test_the_statistics_detect_bad_shuffles() -> None:
    labels = np.sort(np.arange(2000) % 3)
    for bad in (rotated, buffered):
        assert class_counts(bad, labels, 0) < 1e-9
        assert neighbours(bad) < 1e-9
    assert correlation(buffered) < 1e-9
    assert coincidences(constant, EPOCHS) < 1e-9
    assert dependence(constant, SEEDS) < 1e-9
    assert places(constant) < 1e-9


def test_all_orders_of_four_are_equally_likely() -> None:
    epochs = 12_000
    codes = [int(sorted_hashes(4, 16, epoch) @ [64, 16, 4, 1]) for epoch in range(epochs)]
    _, counts = np.unique(codes, return_counts=True)
    assert len(counts) == 24
    assert chi_square(counts, np.full(24, epochs / 24)) > P_VALUE


@pytest.mark.parametrize("size", [70_000, 10**9, 10**12])
def test_a_stretch_of_a_large_order_looks_random(size: int) -> None:
    window = SampleOrder(size, 17, 18).span(size // 2, size // 2 + 20_000)
    assert stats.kstest((window + 0.5) / size, "uniform").pvalue > P_VALUE
    steps = np.diff(window) / size
    # The difference of two independent uniform numbers has the triangular law.
    assert stats.kstest(steps[::2], stats.triang(0.5, loc=-1, scale=2).cdf).pvalue > P_VALUE
    assert abs(np.corrcoef(window[1:], window[:-1])[0, 1]) * math.sqrt(19_999) < 4
    low_bits = np.bincount(window % 64, minlength=64)
    assert chi_square(low_bits, np.full(64, 20_000 / 64)) > P_VALUE
