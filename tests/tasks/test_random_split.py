"""The split by seed: disjoint, complete, in proportion."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from trueloop.tasks.random_split import generator, random_split, stratified_split

labels_of = st.lists(st.integers(0, 5), min_size=1, max_size=200).map(np.array)
shares_of = st.lists(st.floats(0.01, 0.45), min_size=1, max_size=2)


@given(labels=labels_of, shares=shares_of, seed=st.integers(0, 2**63 - 1))
@settings(max_examples=100, deadline=None)
def test_the_parts_are_disjoint_and_complete_and_every_class_trains(labels, shares, seed):
    parts = stratified_split(labels, shares, seed)
    assert len(parts) == len(shares) + 1
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    assert set(labels[parts[0]]) == set(labels)
    for part in parts:
        assert (np.diff(part) > 0).all()


def test_each_class_is_in_proportion_and_the_totals_are_exact():
    labels = np.repeat([0, 1, 2], [700, 200, 100])
    train, test, val = stratified_split(labels, [0.15, 0.1], seed=3)
    assert (len(train), len(test), len(val)) == (750, 150, 100)
    assert np.abs(np.bincount(labels[test]) - [105, 30, 15]).max() <= 1
    assert np.abs(np.bincount(labels[val]) - [70, 20, 10]).max() <= 1


def test_the_seed_alone_decides():
    labels = np.arange(100) % 4
    first = stratified_split(labels, [0.2], 7)
    np.random.seed(1)
    again = stratified_split(labels, [0.2], 7)
    other = stratified_split(labels, [0.2], 8)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert (first[1] != other[1]).any()


def test_a_random_split_takes_rows_from_everywhere():
    train, val = random_split(1000, [0.2], seed=0)
    assert len(val) == 200
    assert 0.4 < val.mean() / 1000 < 0.6
    assert len(train) == 800


def test_generators_for_different_purposes_differ():
    draws = {purpose: generator(0, purpose).random() for purpose in ("a", "b", "split", "spiral")}
    assert len(set(draws.values())) == 4
    assert generator(2**63 - 1, "a").random() == generator(2**63 - 1, "a").random()
