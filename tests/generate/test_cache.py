"""The cache: logits as of a forward over the whole text, for rows of any lengths."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings, strategies as st
from toy_language_model import ToyModel

from trueloop.errors import ConfigError


def whole(model: ToyModel, row: list[int]) -> torch.Tensor:
    """Logits (length, vocab) of a forward without a cache, of one row alone."""
    return model(torch.tensor([row]))[0]


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.inference_mode():
        yield


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_pieces_of_any_length_give_the_logits_of_the_whole(data: st.DataObject) -> None:
    """Prompts of different lengths in one padded pass, then chunks, reordered between them."""
    model = ToyModel(seed=data.draw(st.integers(0, 3))).eval()
    token = st.integers(0, 16)
    rows = data.draw(st.lists(st.lists(token, min_size=1, max_size=6), min_size=1, max_size=4))
    cache = model.new_cache(len(rows), 32)
    longest = max(map(len, rows))
    padded = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    logits = model(padded, cache=cache)
    cache.truncate([len(row) for row in rows])
    for row, found in zip(rows, logits, strict=True):
        torch.testing.assert_close(found[: len(row)], whole(model, row), atol=1e-9, rtol=1e-9)
    for _ in range(data.draw(st.integers(0, 3))):
        if data.draw(st.booleans()):
            picked = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=5))
            cache.reorder(picked)
            rows = [list(rows[k]) for k in picked]
        length = data.draw(st.integers(1, 4))
        if max(map(len, rows)) + length > 32:
            break
        new = [data.draw(st.lists(token, min_size=length, max_size=length)) for _ in rows]
        logits = model(torch.tensor(new), cache=cache)
        rows = [row + more for row, more in zip(rows, new, strict=True)]
        assert cache.lengths == [len(row) for row in rows]
        for row, found in zip(rows, logits, strict=True):
            expected = whole(model, row)[-length:]
            torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)


def test_rows_can_be_replaced() -> None:
    model = ToyModel().eval()
    cache = model.new_cache(3, 16)
    model(torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), cache=cache)
    other = model.new_cache(1, 16)
    model(torch.tensor([[10, 11]]), cache=other)
    cache.replace([1], other)
    logits = model(torch.tensor([[1], [2], [3]]), cache=cache)
    for found, row in zip(logits, [[1, 2, 3, 1], [10, 11, 2], [7, 8, 9, 3]], strict=True):
        torch.testing.assert_close(found[0], whole(model, row)[-1], atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("lengths", [[3, 3], [3, 1]])
def test_no_room(lengths: list[int]) -> None:
    model = ToyModel().eval()
    cache = model.new_cache(2, 4)
    model(torch.zeros(2, 3, dtype=torch.long), cache=cache)
    cache.truncate(lengths)
    model(torch.zeros(2, 1, dtype=torch.long), cache=cache)
    with pytest.raises(ConfigError, match="room for 4 positions, and 5 are needed"):
        model(torch.zeros(2, 1, dtype=torch.long), cache=cache)


def test_rows_of_one_length_need_no_mask_and_copy_nothing_old() -> None:
    model = ToyModel().eval()
    cache = model.new_cache(2, 8)
    keys = torch.randn(2, 2, 3, 4, dtype=torch.double)
    cache.positions(3)
    _, _, first = cache.extend(0, keys, keys)
    cache.advance(3)
    cache.positions(1)
    all_keys, _, later = cache.extend(0, keys[:, :, :1], keys[:, :, :1])
    assert (tuple(first), tuple(later)) == ((None, True), (None, False))
    assert all_keys.data_ptr() == cache._whole[0].data_ptr()
    assert torch.equal(all_keys, torch.cat([keys, keys[:, :, :1]], 2))
