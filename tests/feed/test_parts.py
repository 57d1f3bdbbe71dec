"""Each rank's part of the global batches: disjoint, together the whole, at any number of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from on_ranks import on_ranks
from trueloop import ranks
from trueloop.errors import ConfigError, DataError
from trueloop.feed import Feed, feed as feeds
from trueloop.feed.parts import RankShare, cut

SIZES = st.integers(1, 40)
RANKS = st.integers(1, 9)


class Rows(Dataset[Any]):
    """Counts what is fetched; each sample comes with a draw of its own."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.fetched: list[int] = []

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> torch.Tensor:
        self.fetched.append(index)
        return torch.tensor([float(index), float(torch.rand(()))])


class Lines(IterableDataset[Any]):
    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Iterator[Any]:
        return (torch.tensor([float(i), float(torch.rand(()))]) for i in range(self.size))


class LivedLines(Lines):
    """A stream with a state of its own."""

    position = 0

    def __iter__(self) -> Iterator[Any]:
        while self.position < self.size:
            self.position += 1
            yield torch.tensor([self.position - 1.0, float(torch.rand(()))])
        self.position = 0

    def state_dict(self) -> dict[str, int]:
        return {"position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.position = state["position"]


def as_rank(monkeypatch: pytest.MonkeyPatch, number: int, count: int) -> None:
    monkeypatch.setattr(ranks, "data_parallel", lambda: (number, count))


@given(SIZES, RANKS)
def test_the_parts_of_a_batch_are_together_the_batch(size: int, count: int) -> None:
    spans = [RankShare(number, count).within(size) for number in range(count)]
    assert [i for begin, end in spans for i in range(begin, end)] == list(range(size))
    sizes = [end - begin for begin, end in spans]
    assert max(sizes) - min(sizes) <= 1
    assert sizes[0] == max(sizes)


class OneRank:
    """The feed's question about the ranks, answered without any."""

    def __init__(self, number: int, count: int) -> None:
        self.answer = (number, count)

    def data_parallel(self) -> tuple[int, int]:
        return self.answer


def as_each_rank(count: int, feed: Feed, whole: bool, *place: int) -> list[list[Any]]:
    """(batch, last, stand_in) of the pass at `place`, of each rank."""
    found = []
    before = feeds.ranks
    try:
        for number in range(count):
            feeds.ranks = OneRank(number, count)  # type: ignore[attr-defined]
            batches = feed.whole_batches(*place) if whole else feed.epoch(*place)
            found.append([(batch, batches.last, batches.stand_in) for batch in batches])
    finally:
        feeds.ranks = before  # type: ignore[attr-defined]
    return found


def make_feed(kind: str, size: int, **options: Any) -> Feed:
    data: Any = torch.arange(float(size))[:, None] * torch.ones(2)
    if kind == "stream":
        data = Lines(size)
        options.pop("shuffle")
    elif kind == "map":
        data = Rows(size)
    elif kind == "rows":
        data = torch.utils.data.Subset(TensorDataset(data), range(size))
    return Feed(data, **options)


def numbers(batch: Any) -> list[float]:
    values = batch[0] if isinstance(batch, (tuple, list)) else batch
    return values[:, 0].tolist()  # type: ignore[no-any-return]


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["arrays", "rows", "map", "stream"]),
    size=SIZES,
    batch_size=st.integers(1, 12),
    count=RANKS,
    epoch=st.integers(0, 3),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
    data=st.data(),
)
def test_the_ranks_batches_are_together_the_global_batch(
    kind: str, size: int, batch_size: int, count: int, epoch: int, shuffle: bool, drop_last: bool,
    data: st.DataObject,
) -> None:  # fmt: skip
    count = min(count, batch_size)
    drop_last = drop_last and size >= batch_size
    feed = make_feed(kind, size, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last)
    ((*alone,),) = as_each_rank(1, feed, False, epoch)
    start = data.draw(st.integers(0, len(alone)))
    (*each,) = as_each_rank(count, feed, False, epoch, start)
    assert all(len(mine) == len(alone) - start for mine in each), "as many steps on each rank"
    for number, (whole, last, _) in enumerate(alone[start:]):
        parts = [mine[number] for mine in each]
        union = [i for part, _, stand_in in parts if not stand_in for i in numbers(part)]
        assert union == numbers(whole)
        assert [ends for _, ends, _ in parts] == [last] * count
        stand_ins = [part for part, _, stand_in in parts if stand_in]
        assert len(stand_ins) == max(count - len(whole if kind != "rows" else whole[0]), 0)
        for part in stand_ins:
            assert numbers(part) == numbers(whole)[:2]


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["arrays", "rows", "map", "stream"]),
    size=SIZES,
    batch_size=st.integers(1, 50),
    count=RANKS,
    shuffle=st.booleans(),
    drop_last=st.booleans(),
)
def test_whole_batches_come_in_turn(
    kind: str, size: int, batch_size: int, count: int, shuffle: bool, drop_last: bool
) -> None:
    drop_last = drop_last and size >= batch_size
    feed = make_feed(kind, size, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last)
    (alone,) = as_each_rank(1, feed, True)
    (*each,) = as_each_rank(count, feed, True)
    steps = -(-len(alone) // count)
    assert [len(mine) for mine in each] == [steps] * count
    for mine in each:
        assert [last for _, last, _ in mine] == [False] * (steps - 1) + [True]
    in_turn = [mine[step] for step in range(steps) for mine in each]
    assert [stand_in for _, _, stand_in in in_turn] == [
        number >= len(alone) for number in range(len(in_turn))
    ]
    for (batch, _, _), (whole, _, _) in zip(in_turn, alone, strict=False):
        assert torch.equal(*(b[0] if kind == "rows" else b for b in (batch, whole)))


@given(SIZES, st.integers(1, 12), RANKS, st.booleans())
def test_a_stream_is_cut_as_what_is_reached_by_index(
    size: int, batch_size: int, count: int, whole: bool
) -> None:
    count = count if whole else min(count, batch_size)
    for number in range(count):
        part = RankShare(number, count, whole)
        parts = list(cut(iter(range(size)), batch_size, False, part))
        taken = feeds.portion(part, batch_size, 0, size)
        indices = [p for s in taken.stretches for p in np.split(s.positions(), s.count)]
        assert [part for part, _ in parts] == [each.tolist() for each in indices]
        assert [is_stand_in for _, is_stand_in in parts][-1] == taken.ends_with_stand_in


def test_a_rank_fetches_its_own_samples_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    as_rank(monkeypatch, 1, 4)
    rows = Rows(64)
    feed = Feed(rows, 16, shuffle=True, seed=3)
    seen = [numbers(batch) for batch in feed.epoch(0)]
    assert rows.fetched == [int(i) for batch in seen for i in batch]
    assert len(rows.fetched) == 16


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_what_a_sample_draws_does_not_change_with_the_ranks(workers: int) -> None:
    feed = Feed(Rows(11), 4, shuffle=True, workers=workers)
    alone = torch.cat(list(feed.epoch(1)))
    each = as_each_rank(3, feed, False, 1)
    parts = [mine[step][0] for step in range(3) for mine in each if not mine[step][2]]
    assert torch.equal(torch.cat(parts), alone)


def test_a_stream_in_a_worker_is_cut_as_in_this_process() -> None:
    alone = torch.cat(list(Feed(Lines(11), 4).epoch(1)))
    feed = Feed(Lines(11), 4, workers=1)
    for _ in range(2):  # the worker lives on, and learns of the next pass's part
        each = as_each_rank(3, feed, False, 1)
        parts = [mine[step][0] for step in range(3) for mine in each if not mine[step][2]]
        assert torch.equal(torch.cat(parts), alone)


def test_what_a_transform_draws_does_not_change_with_the_ranks() -> None:
    def noisy(batch: torch.Tensor, draws: Any) -> torch.Tensor:
        return torch.cat([batch, draws(1), draws.normal(2)], dim=1)

    feed = Feed(torch.arange(13.0)[:, None], 5, shuffle=True, transform=noisy)
    alone = torch.cat(list(feed.epoch(2)))
    each = as_each_rank(4, feed, False, 2)
    parts = [mine[step][0] for step in range(3) for mine in each if not mine[step][2]]
    assert torch.equal(torch.cat(parts), alone)


def test_a_memory_map_is_read_in_its_part_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    np.arange(40.0, dtype=np.float32).tofile(tmp_path / "rows")
    rows = np.memmap(tmp_path / "rows", dtype=np.float32, mode="r", shape=(20, 2))
    as_rank(monkeypatch, 2, 3)
    feed = Feed(rows, 6)
    assert [batch[:, 0].tolist() for batch in feed.epoch(0)] == [
        [8.0, 10.0], [20.0, 22.0], [32.0, 34.0], [36.0, 38.0],
    ]  # fmt: skip


def test_a_batch_size_below_the_ranks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    as_rank(monkeypatch, 0, 4)
    feed = Feed(torch.arange(8.0), 2)
    with pytest.raises(ConfigError, match="write batch_size=4 or more"):
        feed.epoch(0)
    assert len(list(feed.whole_batches())) == 1, "whole batches need no cutting"


@pytest.mark.parametrize("data", ["arrays", "map", "stream", "lived"])
def test_resume_at_any_batch_on_another_number_of_ranks(data: str) -> None:
    def make() -> Feed:
        kinds = {"lived": LivedLines, "stream": Lines, "map": Rows}
        options = {} if data in ("stream", "lived") else {"shuffle": True}
        source = kinds[data](23) if data in kinds else torch.arange(23.0)[:, None] * torch.ones(2)
        return Feed(source, 6, **options)

    def states(count: int) -> list[dict[str, Any]]:
        found = []
        for number in range(count):
            feeds.ranks = OneRank(number, count)  # type: ignore[attr-defined]
            feed = make()
            batches = feed.epoch(0)
            next(batches), next(batches)
            found.append(feed.state_dict())
        return found

    whole = torch.cat(list(make().epoch(0)))
    before = feeds.ranks
    try:
        four = states(4)
        assert four == [four[0]] * 4 == states(1) * 4, "the state is the same on every rank"
        parts = []
        for number in range(2):
            feeds.ranks = OneRank(number, 2)  # type: ignore[attr-defined]
            feed = make()
            feed.load_state_dict(four[0])
            assert feed.position == (0, 2)
            parts.append(list(feed.epoch(*feed.position)))
    finally:
        feeds.ranks = before  # type: ignore[attr-defined]
    rest = torch.cat([part for step in zip(*parts, strict=True) for part in step])
    assert torch.equal(rest, whole[12:])


def _batches_here() -> list[list[tuple[list[float], bool, bool]]]:
    """Of three feeds, this rank's (samples, last, stand_in)."""
    feeds = [
        Feed(torch.arange(34.0).reshape(17, 2), 5, shuffle=True, seed=1),
        Feed(Rows(17), 5, shuffle=True, seed=1),
        Feed(Lines(16), 5),
    ]
    found = []
    for feed in feeds:
        batches = feed.epoch(1)
        found.append([(numbers(batch), batches.last, batches.stand_in) for batch in batches])
    return found


def test_the_same_samples_in_each_batch_on_real_ranks() -> None:
    results = {count: on_ranks(count, _batches_here) for count in (1, 2, 4)}
    (alone,) = results[1]
    for count in (2, 4):
        for number, batches in enumerate(alone):
            each = [rank[number] for rank in results[count]]
            for step, (whole, _, _) in enumerate(batches):
                parts = [mine[step] for mine in each]
                assert [i for p, _, stand_in in parts if not stand_in for i in p] == whole
                assert [stand_in for _, _, stand_in in parts].count(True) == max(
                    count - len(whole), 0
                )


class Ranges(IterableDataset[Any]):
    """A stream that reads any range of itself; remembers which."""

    def __init__(self, size: int, missing: int = 0) -> None:
        self.size = size
        self.missing = missing
        self.read: list[tuple[int, int]] = []
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Any]:
        return self.iter_range(0, self.size)

    def iter_range(self, start: int, stop: int) -> Iterator[Any]:
        self.read.append((start, stop))
        for position in range(start, min(stop, self.size - self.missing)):
            yield torch.tensor([float(position + 100 * self.epoch), float(torch.rand(()))])


class Endless(Ranges):
    __len__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_of_ranges_reads_its_part_alone(workers: int) -> None:
    alone = list(Feed(Ranges(23), 6).epoch(1))
    assert torch.cat(alone)[:, 0].tolist() == [100.0 + i for i in range(23)]
    feed = Feed(Ranges(23), 6, workers=workers)
    each = as_each_rank(4, feed, False, 1)
    for step, whole in enumerate(alone):
        parts = [mine[step][0] for mine in each if not mine[step][2]]
        assert torch.equal(torch.cat(parts), whole)


def test_a_stream_of_ranges_is_reached_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    as_rank(monkeypatch, 1, 2)
    ranges = Ranges(10**12)
    feed = Feed(ranges, 8)
    start = len(feed) - 2
    assert len(list(feed.epoch(0, start))) == 2
    assert ranges.read == [(10**12 - 12, 10**12 - 8), (10**12 - 4, 10**12)]


def test_what_a_stream_of_ranges_must_have() -> None:
    with pytest.raises(DataError, match=r"iter_range and no __len__: define __len__"):
        Feed(Endless(8), 4)
    with pytest.raises(ConfigError, match="shuffle inside it"):
        Feed(Ranges(8), 4, shuffle=True)
    with pytest.raises(DataError, match=r"iter_range\(4, 8\) of Ranges gave 3 samples instead of"):
        list(Feed(Ranges(8, missing=1), 4))
