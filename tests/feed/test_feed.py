"""The feed: positions, lengths, states, and a clear word about every mistake."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from trueloop.errors import ConfigError, DataError, DeviceError, RunError, UserError
from trueloop.feed import Feed


class Squares(Dataset[Any]):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([float(index), float(index**2)])


class Lines(IterableDataset[Any]):
    """A stream without a length."""

    def __init__(self, size: int = 10) -> None:
        self.size = size

    def __iter__(self) -> Iterator[Any]:
        return (torch.tensor([float(i)]) for i in range(self.size))


class SizedLines(Lines):
    """A stream whose length is off by `error`."""

    error = 0

    def __len__(self) -> int:
        return self.size + self.error


class TooShort(SizedLines):
    error = 30


class NoLength:
    def __getitem__(self, index: int) -> int:
        return index


def loader(data: Any, **options: Any) -> DataLoader[Any]:
    return DataLoader(data, batch_size=4, **options)


SOURCES: dict[str, Any] = {
    "tensor": lambda: Feed(torch.arange(10.0), 4, shuffle=True),
    "dict": lambda: Feed({"x": torch.arange(10.0)}, 4),
    "dataset": lambda: Feed(Squares(), 4, shuffle=True),
    "workers": lambda: Feed(Squares(), 4, shuffle=True, workers=1),
    "transform": lambda: Feed(torch.arange(10.0), 4, transform=lambda batch, draws: batch + 1),
    "stream": lambda: Feed(Lines(), 4),
    "sized": lambda: Feed(SizedLines(), 4),
    "overrated": lambda: Feed(TooShort(), 4),
    "loader": lambda: Feed(loader(Squares())),
    "streaming loader": lambda: Feed(loader(Lines())),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_an_epoch_knows_its_last_batch(kind: str) -> None:
    feed = SOURCES[kind]()
    epoch = feed.epoch(0)
    assert [epoch.last for _ in epoch] == [False, False, True]
    assert list(epoch) == []
    tail = feed.epoch(0, 2)
    assert [tail.last for _ in tail] == [True]
    assert list(feed.epoch(0, 3)) == []


@pytest.mark.parametrize("kind", ["tensor", "dataset", "stream", "loader"])
def test_an_epoch_that_ends_early_is_forgotten(kind: str) -> None:
    feed = SOURCES[kind]()
    closed, dropped = feed.epoch(0), feed.epoch(0)
    next(closed)
    next(dropped)
    closed.close()
    assert list(closed) == []
    alive = weakref.ref(dropped)
    del dropped
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("kind", SOURCES)
def test_lengths(kind: str) -> None:
    feed = SOURCES[kind]()
    if kind in ("stream", "streaming loader"):
        assert (feed.has_length, feed.samples) == (False, None)
        with pytest.raises(DataError, match="__len__"):
            len(feed)
    elif kind == "overrated":
        assert (feed.has_length, len(feed), feed.samples) == (True, 10, 40)
    else:
        assert (feed.has_length, len(feed), feed.samples) == (True, 3, 10)
    assert bool(feed)
    assert len(list(feed)) == 3


def test_a_feed_iterates_over_epoch_0() -> None:
    feed = Feed(torch.arange(100), 10, shuffle=True)
    for _ in range(2):
        assert torch.equal(torch.cat(list(feed)), torch.cat(list(feed.epoch(0))))


def test_a_large_batch_size_gives_one_batch() -> None:
    feed = Feed(torch.arange(3), 100)
    assert len(feed) == 1
    epoch = feed.epoch(4)
    next(epoch)
    assert epoch.last


@pytest.mark.parametrize("kind", ["tensor", "dataset", "workers", "stream", "loader"])
def test_position_and_state(kind: str) -> None:
    feed = SOURCES[kind]()
    assert feed.position == (0, 0)
    expected = list(feed.epoch(2))
    assert feed.position == (3, 0)
    epoch = feed.epoch(2)
    assert feed.position == (2, 0)
    next(epoch)
    assert feed.position == (2, 1)
    state = feed.state_dict()
    assert {key: state[key] for key in ("epoch", "batch", "seed", "drop_last")} == {
        "epoch": 2, "batch": 1, "seed": 0, "drop_last": False,
    }  # fmt: skip
    other = SOURCES[kind]()
    other.load_state_dict(state)
    assert other.position == (2, 1)
    rest = list(other.epoch(*other.position))
    assert all(torch.equal(one, two) for one, two in zip(rest, expected[1:], strict=True))
    next(epoch)
    next(epoch)
    assert feed.position == (2, 3)  # the last batch is out, and the epoch not yet over
    assert list(epoch) == []
    assert feed.position == (3, 0)


def test_the_state_survives_a_safe_load(tmp_path: Path) -> None:
    for kind in ("tensor", "dataset", "stream", "loader"):
        feed = SOURCES[kind]()
        next(feed.epoch(1))
        torch.save(feed.state_dict(), tmp_path / "state")
        again = SOURCES[kind]()
        again.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
        assert again.position == feed.position == (1, 1)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("seed", lambda: Feed(torch.arange(10), 4, seed=1)),
        ("batch_size", lambda: Feed(torch.arange(10), 5)),
        ("samples", lambda: Feed(torch.arange(11), 4)),
        ("shuffle", lambda: Feed(torch.arange(10), 4, shuffle=True)),
        ("drop_last", lambda: Feed(torch.arange(10), 4, drop_last=True)),
    ],
)
def test_a_state_of_another_order_is_refused(name: str, other: Any) -> None:
    state = Feed(torch.arange(10), 4).state_dict()
    with pytest.raises(RunError, match=f"{name}="):
        other().load_state_dict(state)


class LyingSampler:
    def __init__(self, promised: int) -> None:
        self.promised = promised

    def __len__(self) -> int:
        return self.promised

    def __iter__(self) -> Iterator[list[int]]:
        yield from [[0, 1], [2, 3]]


@pytest.mark.parametrize("promised", [1, 3])
def test_a_wrong_length_is_an_error(promised: int) -> None:
    feed = Feed(DataLoader(Squares(), batch_sampler=LyingSampler(promised)))
    with pytest.raises(DataError, match="promised"):
        list(feed.epoch(0))


@pytest.mark.parametrize("drop_last", [False, True])
def test_a_stream_without_a_batch_is_an_error(drop_last: bool) -> None:
    with pytest.raises(DataError, match="no batch at all"):
        list(Feed(Lines(3 if drop_last else 0), 4, drop_last=drop_last).epoch(0))


def test_transform_must_return_the_batch() -> None:
    with pytest.raises(ConfigError, match="return batch"):
        list(Feed(torch.arange(4), 2, transform=lambda batch, draws: None))


X = torch.arange(10)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Feed(X, 0), ConfigError, "batch_size=0"),
        (lambda: Feed(X, -1), ConfigError, "batch_size=-1"),
        (lambda: Feed(X, True), ConfigError, "batch_size=True"),
        (lambda: Feed(X, 2.0), ConfigError, r"batch_size=2\.0"),
        (lambda: Feed(X), ConfigError, "batch_size=None"),
        (lambda: Feed(X, 2, seed=-1), ConfigError, "seed=-1"),
        (lambda: Feed(X, 2, workers=-1), ConfigError, "workers=-1"),
        (lambda: Feed(X, 2, workers=True), ConfigError, "workers=True"),
        (lambda: Feed(X, 2, prefetch_factor=0), ConfigError, "prefetch_factor=0"),
        (lambda: Feed(X, 2, shuffle=1), ConfigError, "shuffle=1"),
        (lambda: Feed(X, 2, drop_last="no"), ConfigError, "drop_last='no'"),
        (lambda: Feed(X, 2, transform=3), ConfigError, "transform=3"),
        (lambda: Feed(Squares(), 2, collate_fn=3), ConfigError, "collate_fn=3"),
        (lambda: Feed(X, 11, drop_last=True), ConfigError, "drop_last"),
        (lambda: Feed(Squares(), 11, drop_last=True), ConfigError, "drop_last"),
        (lambda: Feed(X, 2, device="gpu"), DeviceError, "gpu"),
        (lambda: Feed(X, 2).epoch(-1), ConfigError, "epoch=-1"),
        (lambda: Feed(X, 2).epoch(0, -1), ConfigError, "start=-1"),
        (lambda: Feed(X, 2).epoch(0, 6), ConfigError, "start=6"),
        (lambda: Feed(Lines(), 2, shuffle=True), ConfigError, "shuffle inside it"),
        (lambda: Feed(Lines(), 2, workers=2), ConfigError, "workers=1"),
        (lambda: Feed(Lines(), 2, transform=print), ConfigError, "indices"),
        (lambda: Feed(iter(X), 2), DataError, "one-shot"),
        (lambda: Feed((i for i in range(3)), 2), DataError, "one-shot generator"),
        (lambda: Feed(NoLength(), 2), DataError, "define __len__"),
        (lambda: Feed(Squares, 2), DataError, r"write Squares\(\.\.\.\)"),
        (lambda: Feed("data.csv", 2), DataError, "read it first"),
        (lambda: Feed(Path("data.csv"), 2), DataError, "read it first"),
        (lambda: Feed(7, 2), DataError, "the data is an int"),
        (lambda: Feed(None, 2), DataError, "the data is None"),
        (lambda: Feed(loader(Squares()), 4), ConfigError, "no batch_size with it"),
        (
            lambda: Feed(loader(Squares()), shuffle=True, workers=2, seed=1, transform=print),
            ConfigError,
            "no shuffle, seed, transform, workers with it",
        ),
        (lambda: Feed(loader(TensorDataset(X[:0]))), DataError, "no samples"),
        (lambda: Feed(loader(TensorDataset(X[:3]), drop_last=True)), ConfigError, "drop_last"),
    ],
)
def test_mistakes_are_named_in_one_line(make: Any, error: type[UserError], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_numpy_integers_are_integers() -> None:
    feed = Feed(X, np.int64(4), workers=np.int32(0), seed=np.int64(1))
    assert len(feed) == 3
    assert type(feed.batch_size) is int
