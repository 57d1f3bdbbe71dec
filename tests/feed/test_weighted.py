"""Weighted sampling: as often as the weights say, a function of the place, the same everywhere.

Counts are compared with the weights (float64, brute force); the seeds are fixed, so a test passes
always or never.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy import stats
from torch.utils.data import Dataset, Subset, TensorDataset

from trueloop.errors import ConfigError, RunError, UserError
from trueloop.feed import BatchDataset, Feed
from trueloop.feed.order import SampleOrder
from trueloop.feed.parts import RankShare, portion
from trueloop.feed.weighted import SampleWeights, WeightedOrder, balanced

P_VALUE = 1e-4


def counts_of(weights: np.ndarray, epochs: int, seed: int = 0) -> np.ndarray:
    """How often each sample comes in each epoch: (epochs, samples)."""
    table, size = SampleWeights(weights), len(weights)
    drawn = [WeightedOrder(table, seed, epoch).span(0, size) for epoch in range(epochs)]
    return np.stack([np.bincount(one, minlength=size) for one in drawn])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=80).filter(lambda w: max(w) > 1e-3),
    st.integers(0, 2**62),
)
def test_no_sample_is_drawn_much_more_or_less_often_than_its_weight(
    weights: list[float], seed: int
) -> None:
    drawn = counts_of(np.array(weights), 3, seed)
    expected = np.array([len(weights) * (w / math.fsum(weights)) for w in weights])
    assert (drawn.sum(axis=1) == len(weights)).all()
    assert (drawn < expected + 2 + 1e-6).all()
    assert (drawn > expected - 2 - 1e-6).all()
    assert (drawn[:, np.array(weights) == 0] == 0).all()


def test_the_mean_over_epochs_is_the_weight() -> None:
    weights = np.random.default_rng(1).exponential(size=50) ** 2
    drawn = counts_of(weights, 4000)
    expected = 50 * weights / weights.sum()
    # Of independent draws, the variance is the expected number; of these it is at most that.
    z = (drawn.mean(axis=0) - expected) / np.sqrt(expected / 4000)
    assert stats.chi2.sf((z**2).sum(), 49) > P_VALUE
    # The test can tell: weights that are 3% off fail it.
    off = expected * (1 + 0.03 * np.where(np.arange(50) % 2, 1, -1))
    wrong = (drawn.mean(axis=0) - off) / np.sqrt(off / 4000)
    assert stats.chi2.sf((wrong**2).sum(), 49) < P_VALUE


def test_draws_are_independent_of_where_they_come_and_of_the_epoch() -> None:
    weights, size = np.repeat([1.0, 3.0], 100), 200
    table = SampleWeights(weights)
    orders = np.stack([WeightedOrder(table, 7, epoch).span(0, size) for epoch in range(500)])
    heavy = (orders >= 100).sum(axis=0)  # at each position, of 500 epochs
    assert stats.chi2.sf((((heavy - 375) ** 2) / (500 * 0.75 * 0.25)).sum(), size) > P_VALUE
    same = (np.sort(orders[:-1]) == np.sort(orders[1:])).all(axis=1)
    assert not same.any()


def test_balanced_gives_each_class_its_share_of_each_epoch() -> None:
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [900, 90, 10]))
    drawn = counts_of(balanced(labels), 20)
    for label in range(3):
        share = drawn[:, labels == label].sum(axis=1)
        assert (abs(share - 1000 / 3) <= 2).all()
    # Every sample of the rarer classes comes in every epoch, and of the large one within some.
    assert drawn[:, labels > 0].min() >= 1
    assert (drawn[:, labels == 0].sum(axis=0) > 0).all()


def test_equal_weights_are_the_shuffle() -> None:
    for size in (1, 7, 1000, 70_000):
        order = WeightedOrder(SampleWeights(np.full(size, 0.3)), 3, 2)
        assert (order.span(0, size) == SampleOrder(size, 3, 2).span(0, size)).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 5), st.integers(0, 20))
def test_any_ranks_take_the_parts_of_one_order(
    size: int, batch: int, count: int, start: int
) -> None:
    order = WeightedOrder(SampleWeights(np.arange(1.0, size + 1)), 5, 1)
    whole = order.span(0, size)
    batch, start = max(batch, count), min(start * batch, size)
    taken: list[list[np.ndarray]] = []
    for number in range(count):
        part = portion(RankShare(number, count), batch, start, size)
        parts = list(order.batches(part.stretches))
        keyed = list(order.keyed_batches(part.stretches))
        assert all((a == b).all() for a, (b, _) in zip(parts, keyed, strict=True))
        taken.append(parts[: len(parts) - part.ends_with_stand_in])
    merged = []
    for place, first in enumerate(range(start, size, batch)):
        here = [parts[place] for parts in taken if place < len(parts)]
        merged.append(np.concatenate(here))
        assert (merged[-1] == whole[first : first + batch]).all()


def test_a_feed_starts_anywhere_and_resumes_there() -> None:
    data = (torch.arange(40.0), torch.arange(40) % 2)
    weights = torch.arange(40.0) ** 2

    def feed(**options: Any) -> Feed:
        return Feed(data, 6, shuffle=True, seed=4, weights=weights, **options)

    whole = list(feed().epoch(3))
    for start in range(8):
        rest = list(feed().epoch(3, start))
        assert len(rest) == len(whole) - start
        assert all(torch.equal(a[0], b[0]) for a, b in zip(rest, whole[start:], strict=True))
    first = feed()
    batches = first.epoch(3)
    list(islice(batches, 4))
    state = first.state_dict()
    second = feed()
    second.load_state_dict(state)
    going_on = list(second.epoch(*second.position))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(going_on, whole[4:], strict=True))
    assert torch.cat([b[0] for b in whole]).tolist() == first.sample_indices(3, 0, 7)
    for other in (
        Feed(data, 6, shuffle=True, seed=4),
        feed().__class__(data, 6, shuffle=True, seed=4, weights="balanced"),
    ):
        with pytest.raises(RunError, match="the saved feed has weights="):
            other.load_state_dict(state)
    with pytest.raises(RunError, match="the saved feed has weights=None"):
        feed().load_state_dict(Feed(data, 6, shuffle=True, seed=4).state_dict())


class Noisy(Dataset[Any]):
    """Each sample is its index and what it draws."""

    targets = (0, 0, 0, 0, 0, 0, 0, 1)

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[int, float]:
        return index, float(torch.rand(()))


class Gathered(BatchDataset):
    labels = np.array([0, 0, 0, 0, 0, 0, 0, 1])

    def __len__(self) -> int:
        return 8

    def get_batch(self, indices: np.ndarray, epoch: int) -> Any:
        return (torch.from_numpy(indices),)


def test_a_sample_that_comes_again_draws_anew() -> None:
    """And equally from any position and with workers."""

    def drawn(workers: int = 0, start: int = 0) -> list[tuple[int, float]]:
        feed = Feed(Noisy(), 2, shuffle=True, weights="balanced", workers=workers)
        return [
            pair
            for i, x in feed.epoch(0, start)
            for pair in zip(*(p.tolist() for p in (i, x)), strict=True)
        ]

    whole = drawn()
    rare = [x for index, x in whole if index == 7]
    assert 3 <= len(rare) <= 5
    assert len(set(rare)) == len(rare)
    assert drawn(start=2) == whole[4:]
    assert drawn(workers=1) == whole
    transformed = Feed(
        (torch.arange(8), torch.tensor(Noisy.targets)),
        2,
        shuffle=True,
        weights="balanced",
        transform=lambda batch, draws: (batch[0], draws(1)[:, 0]),
    )
    pairs = [
        pair for i, x in transformed for pair in zip(*(p.tolist() for p in (i, x)), strict=True)
    ]
    assert [index for index, _ in pairs] == [index for index, _ in whole]
    again = [x for index, x in pairs if index == 7]
    assert len(set(again)) == len(again)


def test_where_the_classes_are_read_from() -> None:
    inputs, labels = torch.arange(8), torch.tensor(Noisy.targets)
    for data in (
        (inputs, labels),
        (inputs, labels.float()),
        (inputs, labels.numpy()),
        {"inputs": inputs, "targets": labels},
        TensorDataset(inputs, labels),
        Subset(TensorDataset(inputs, labels), list(range(8))),
        Noisy(),
        Gathered(),
    ):
        feed = Feed(data, 8, shuffle=True, weights="balanced")
        assert 3 <= feed.sample_indices(0, 0).count(7) <= 5


@pytest.mark.parametrize(
    ("data", "options", "says"),
    [
        ((torch.zeros(3),), {"weights": [1, 1, 1]}, "write shuffle=True"),
        (torch.zeros(3), {"weights": [1, 1], "shuffle": True}, "2 numbers and the data 3 samples"),
        (torch.zeros(3), {"weights": [1, -1, 1], "shuffle": True}, "negative"),
        (torch.zeros(3), {"weights": [0, 0, 0], "shuffle": True}, "only zeros"),
        (torch.zeros(3), {"weights": [1, math.nan, 1], "shuffle": True}, "NaN"),
        (torch.zeros(3), {"weights": torch.ones(3, 1), "shuffle": True}, "one number for each"),
        (torch.zeros(3), {"weights": object(), "shuffle": True}, "one number for each"),
        (torch.zeros(3), {"weights": "balance", "shuffle": True}, "balanced"),
        (torch.zeros(3), {"weights": "balanced", "shuffle": True}, "an array of weights instead"),
        (
            (torch.zeros(3), torch.rand(3)),
            {"weights": "balanced", "shuffle": True},
            "one class index for each",
        ),
    ],
)
def test_what_cannot_work_is_refused(data: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        Feed(data, 2, **options)


def test_a_loader_takes_no_weights() -> None:
    loader = torch.utils.data.DataLoader(TensorDataset(torch.zeros(3)), 2)
    with pytest.raises(ConfigError, match="no weights with it"):
        Feed(loader, weights=[1, 2, 3])
