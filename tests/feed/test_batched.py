"""A data set whose batches are gathered at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from trueloop import Feed
from trueloop.errors import ConfigError, DataError
from trueloop.feed import BatchDataset
from trueloop.feed.parts import RankShare


class Numbers(BatchDataset):
    """Sample i of epoch e is (100 e + i, i)."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.calls: list[tuple[list[int], int]] = []

    def __len__(self) -> int:
        return self.count

    def get_batch(self, indices: Any, epoch: int) -> Any:
        self.calls.append((indices.tolist(), epoch))
        return torch.from_numpy(100 * epoch + indices), torch.from_numpy(indices.copy())


def test_batches_are_those_of_the_samples_in_the_order_of_arrays() -> None:
    feed = Feed(Numbers(10), 4, shuffle=True, seed=3)
    same = Feed(torch.arange(10), 4, shuffle=True, seed=3)
    for epoch in (0, 2):
        for (values, rows), expected in zip(feed.epoch(epoch), same.epoch(epoch), strict=True):
            assert torch.equal(rows, expected)
            assert torch.equal(values, expected + 100 * epoch)


def test_only_what_is_asked_for_is_gathered() -> None:
    data = Numbers(10_000_000)
    feed = Feed(data, 3, shuffle=True, workers=2)
    batch = next(feed.epoch(5, start=3_000_000))
    assert data.calls == [(batch[1].tolist(), 5)]


def test_each_rank_gathers_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [rows for _, rows in Feed(Numbers(11), 4, shuffle=True).epoch(1)]
    parts = []
    for number in range(2):
        feed = Feed(Numbers(11), 4, shuffle=True)
        monkeypatch.setattr(feed, "_part", lambda number=number: RankShare(number, 2))
        parts.append([rows for _, rows in feed.epoch(1)])
    assert all(
        torch.equal(torch.cat(both), rows) for *both, rows in zip(*parts, whole, strict=True)
    )


def test_transforms_draw_by_the_index() -> None:
    def add(batch: Any, draws: Any) -> Any:
        return batch[1], draws(1)

    feed = Feed(Numbers(6), 2, shuffle=True, transform=add)
    seen = {int(row): draw for rows, draws in feed.epoch(0) for row, draw in zip(rows, draws)}  # noqa: B905
    again = Feed(torch.arange(6), 3, transform=lambda batch, draws: (batch, draws(1)))
    for rows, draws in again.epoch(0):
        assert all(seen[int(row)] == draw for row, draw in zip(rows, draws, strict=True))


def test_single_samples_and_torchs_own_loader() -> None:
    data = Numbers(5)
    assert [int(part) for part in data[4]] == [4, 4]
    assert [int(part) for part in data[-1]] == [4, 4]
    data.set_epoch(3)
    assert [int(part) for part in data[1]] == [301, 1]
    with pytest.raises(IndexError):
        data[5]
    assert [rows.tolist() for _, rows in DataLoader(data, batch_size=2)] == [[0, 1], [2, 3], [4]]


def test_a_failing_data_set_is_named() -> None:
    class Broken(Numbers):
        def get_batch(self, indices: Any, epoch: int) -> Any:
            return np.zeros(3)[indices]

    with pytest.raises(DataError, match=r"Broken\.get_batch .* sample 2 to sample 3"):
        list(Feed(Broken(4), 2).epoch(0))
    with pytest.raises(ConfigError, match="whole batches: use transform"):
        Feed(Numbers(4), 2, collate_fn=lambda samples: samples)
