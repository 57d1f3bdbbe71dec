"""Which tokens a sample of text holds, against slices taken one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from trueloop import Feed
from trueloop.errors import DataError
from trueloop.tasks.text.context_windows import IGNORE, Contexts, WindowDataset

SIZES = st.tuples(st.integers(2, 60), st.integers(1, 12))


def ids(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 5, count).astype(np.uint16)


def documents_of(row: list[int], end: int) -> list[int]:
    numbers, number = [], 0
    for token in row:
        numbers.append(number)
        number += token == end
    return numbers


@given(SIZES, st.integers(0, 3), st.integers(0, 9))
def test_contexts_are_slices_that_do_not_overlap(
    sizes: tuple[int, int], epoch: int, seed: int
) -> None:
    count, context = sizes
    array = ids(count)
    if count <= context:
        with pytest.raises(DataError, match=f"a context of {context} needs {context + 1}"):
            Contexts(array, context)
        return
    data = Contexts(array, context, seed=seed)
    assert len(data) == max((count - context) // context, 1)
    tokens, targets = data.get_batch(np.arange(len(data)), epoch)
    assert tokens.dtype == targets.dtype == torch.int64
    first = data.offset(epoch)
    stop = first + len(data) * context
    assert first >= 0
    assert stop < count
    assert tokens.flatten().tolist() == array[first:stop].tolist()
    assert targets.flatten().tolist() == array[first + 1 : stop + 1].tolist()
    assert count - len(data) * context < 2 * context + 1  # tokens left out


@given(SIZES)
def test_windows_predict_each_token_once(sizes: tuple[int, int]) -> None:
    count, context = sizes
    array = ids(count)
    data = WindowDataset(array, context)
    tokens, targets = data.get_batch(np.arange(len(data)), 0)
    assert tokens.shape == targets.shape == (len(data), context)
    said = targets[targets != IGNORE].tolist()
    assert said == array[1:].tolist()
    before = tokens[targets != IGNORE].tolist()
    assert before == array[:-1].tolist()
    one_by_one = [data.get_batch(np.array([k]), 0)[0][0] for k in reversed(range(len(data)))]
    assert torch.equal(torch.stack(one_by_one[::-1]), tokens)


@given(SIZES, st.integers(0, 4))
def test_documents_end_with_their_last_position(sizes: tuple[int, int], end: int) -> None:
    count, context = sizes
    array = ids(count)
    for data in (WindowDataset(array, context, end_of_text=end),) + (
        (Contexts(array, context, end_of_text=end),) if count > context else ()
    ):
        tokens, targets, documents = data.get_batch(np.arange(len(data)), 1)
        start = data.offset(1) if isinstance(data, Contexts) else 0
        for k in range(len(data)):
            there = array[start + k * context :][: context + 1].tolist()
            said = [
                there[p + 1] if p + 1 < len(there) and there[p] != end else IGNORE
                for p in range(context)
            ]
            padded = (there + [0] * context)[:context]
            assert tokens[k].tolist() == padded
            assert targets[k].tolist() == said
            assert documents[k].tolist() == documents_of(padded, end)


def test_offsets_differ_from_epoch_to_epoch_and_seed_to_seed() -> None:
    data = Contexts(ids(100_000), 64)
    offsets = [data.offset(epoch) for epoch in range(200)]
    assert len(set(offsets)) > 60
    assert min(offsets) < 16
    assert max(offsets) > 48
    assert [Contexts(ids(100_000), 64, seed=1).offset(e) for e in range(200)] != offsets


def test_a_feed_gives_the_same_contexts_from_any_position() -> None:
    feed = Feed(Contexts(ids(5_000), 16), 7, shuffle=True, seed=2)
    for epoch in (0, 3):
        whole = list(feed.epoch(epoch))
        for start in (0, 5, len(feed)):
            rest = list(feed.epoch(epoch, start))
            assert len(rest) == len(whole) - start
            for one, other in zip(whole[start:], rest, strict=True):
                assert all(map(torch.equal, one, other))


def test_too_little_text_is_named() -> None:
    with pytest.raises(DataError, match=r"has 9 tokens, and a context of 9 needs 10: write --con"):
        Contexts(ids(9), 9)
    with pytest.raises(DataError, match=r"has 1 token, and a context of 4 needs 5: give more"):
        Contexts(ids(1), 4)
    with pytest.raises(DataError, match=r"validation text has 1 token, and"):
        WindowDataset(ids(1), 4)
