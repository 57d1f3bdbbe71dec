"""The order by blocks and windows: a permutation, reached at any position, of bounded reach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from trueloop.feed.parts import RankShare, portion
from trueloop.feed.windows import WindowOrder

SIZES = st.lists(st.integers(0, 40), min_size=1, max_size=40).filter(any)
KEY = {"seed": st.integers(0, 2**63 - 1), "epoch": st.integers(0, 1000)}


@settings(max_examples=60, deadline=None)
@given(sizes=SIZES, window=st.integers(1, 500), **KEY)
def test_it_is_a_permutation_whose_windows_are_whole_blocks(
    sizes: list[int], window: int, seed: int, epoch: int
) -> None:
    order = WindowOrder(np.array(sizes), window, seed, epoch)
    whole = order.span(0, sum(sizes))
    assert sorted(whole.tolist()) == list(range(sum(sizes)))
    firsts = np.cumsum(sizes) - sizes
    position = 0
    for number in range(order.windows):
        blocks = order.blocks_of(number)
        samples = sum(sizes[block] for block in blocks)
        assert samples < window + max(sizes)
        assert samples <= order.largest_window
        assert order.window_at(position) == number == order.window_at(position + samples - 1)
        expected = np.concatenate([firsts[b] + np.arange(sizes[b]) for b in blocks])
        taken = whole[position : position + samples]
        assert sorted(taken.tolist()) == sorted(expected.tolist())
        position += samples
    assert position == sum(sizes)
    assert not len(order.blocks_of(order.windows))


@settings(max_examples=60, deadline=None)
@given(
    sizes=SIZES,
    window=st.integers(1, 500),
    size=st.integers(1, 64),
    place=st.floats(0, 1),
    count=st.integers(1, 6),
    **KEY,
)
def test_any_start_and_any_number_of_ranks_give_the_same_order(
    sizes: list[int], window: int, size: int, place: float, count: int, seed: int, epoch: int
) -> None:
    """Each batch is the ranks' parts one after the other, from any batch on."""
    total = sum(sizes)
    whole = WindowOrder(np.array(sizes), window, seed, epoch).span(0, total).tolist()
    start = int(place * (total // size)) * size
    parts = []
    for rank in range(min(count, size)):
        order = WindowOrder(np.array(sizes), window, seed, epoch)
        taken = portion(RankShare(rank, min(count, size)), size, start, total)
        batches = [batch.tolist() for batch in order.batches(taken.stretches)]
        parts.append(batches[:-1] if taken.ends_with_stand_in else batches)
    rows = range(max(len(batches) for batches in parts))
    together = [batch for row in rows for batches in parts for batch in batches[row : row + 1]]
    assert [index for batch in together for index in batch] == whole[start:]


def test_without_shuffle_it_is_the_sequence_and_each_block_a_window() -> None:
    sizes = np.array([3, 0, 5, 2])
    order = WindowOrder(sizes, 4, 1, 2, shuffle=False)
    assert order.in_sequence
    assert order.span(0, 10).tolist() == list(range(10))
    assert [order.blocks_of(number).tolist() for number in range(3)] == [[0], [2], [3]]


def test_orders_are_what_they_were_in_earlier_versions() -> None:
    # A changed order would break the exact resume of every run on disk.
    order = WindowOrder(np.full(10**4, 10**5), 2**20, 1, 2)
    assert order.size == 10**9
    assert order.span(0, 4).tolist() == [338528789, 115784651, 648964494, 811798825]
    assert WindowOrder(np.array([4, 4, 4]), 8, 0, 0).span(0, 12).tolist() == [
        2,
        7,
        5,
        1,
        3,
        4,
        6,
        0,
        8,
        9,
        11,
        10,
    ]


def test_it_depends_on_seed_epoch_and_window() -> None:
    keys = [(64, 0, 0), (64, 1, 0), (64, 0, 1), (128, 0, 0)]
    orders = [tuple(WindowOrder(np.full(40, 25), *key).span(0, 1000)) for key in keys]
    assert len(set(orders)) == 4


@pytest.mark.parametrize("window", [5, 10, 20])
def test_every_sample_stands_at_every_position_equally_often(window: int) -> None:
    size, epochs = 20, 1000
    table = np.zeros((size, size))
    for epoch in range(epochs):
        order = WindowOrder(np.full(4, 5), window, 3, epoch)
        table[np.arange(size), order.span(0, size)] += 1
    cells = (table - epochs / size) / np.sqrt(epochs / size)
    assert np.abs(cells).max() < 5


@pytest.mark.parametrize(("blocks", "is_mixed"), [(1, False), (32, True)])
def test_what_a_window_costs_the_shuffle(blocks: int, is_mixed: bool) -> None:
    """Data sorted by class: the share of class 0 in a batch varies as in a full shuffle, and on top
    of that by the share's variance between blocks divided by the blocks in a window."""
    size, block, batch = 20_000, 50, 40
    labels = np.arange(size) * 2 // size
    shares = []
    for epoch in range(200):
        order = WindowOrder(np.full(size // block, block), blocks * block, 5, epoch)
        shares.append(labels[order.span(6400, 6400 + batch)].mean())
    full = 0.25 / batch
    expected = full + 0.25 / blocks if blocks > 1 else 0.25
    assert 0.7 * expected < np.var(shares) < 1.4 * expected
    assert (np.var(shares) < 4 * full) == is_mixed
