"""The laws of `Feed(Shards(...))`: every sample once, whoever reads it, from any batch on."""

from __future__ import annotations

import itertools
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from shard_files import write_arrow, write_parquet, write_tar

import trueloop
from on_ranks import on_ranks
from trueloop.errors import RunError
from trueloop.feed import Feed, Shards
from trueloop.feed.shards.columnar import Footers
from trueloop.feed.shards.storage import File

pytestmark = pytest.mark.filterwarnings("ignore:a window of")

COUNTS = [40, 0, 7, 1, 90, 16, 33]
TOTAL = sum(COUNTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shards")
    write_parquet(root / "parquet", COUNTS)
    write_arrow(root / "arrow", COUNTS)
    first = 0
    for number, count in enumerate(COUNTS):
        samples = [{"cls": str(first + k).encode()} for k in range(count)]
        write_tar(root / "tar" / f"{number:03d}.tar", samples, first)
        first += count
    return root


def numbers(batch: Any) -> list[int]:
    found: list[int] = (batch["x"] if isinstance(batch, dict) else batch[0]).tolist()
    return found


def epoch_of(feed: Feed, epoch: int = 0, start: int = 0) -> list[list[int]]:
    return [numbers(batch) for batch in feed.epoch(epoch, start)]


@settings(max_examples=15, deadline=None)
@given(
    window=st.integers(1, 300),
    size=st.integers(6, 70),
    place=st.floats(0, 1),
    seed=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 50),
    shuffle=st.booleans(),
)
def test_every_sample_comes_once_and_any_start_gives_the_tail(
    folder: Path, window: int, size: int, place: float, seed: int, epoch: int, shuffle: bool
) -> None:
    shards = Shards(folder / "parquet", window=window)
    feed = Feed(shards, size, shuffle=shuffle, seed=seed)
    whole = epoch_of(feed, epoch)
    together = [number for batch in whole for number in batch]
    assert sorted(together) == list(range(TOTAL))
    assert shuffle or together == sorted(together)
    assert feed.sample_indices(epoch, 0, len(feed)) == together
    start = int(place * len(feed))
    fresh = Feed(Shards(folder / "parquet", window=window), size, shuffle=shuffle, seed=seed)
    assert epoch_of(fresh, epoch, start) == whole[start:]


@pytest.mark.parametrize("form", ["parquet", "arrow", "tar"])
def test_workers_do_not_change_the_order(folder: Path, form: str) -> None:
    fields = ("cls",) if form == "tar" else None
    shards = Shards(folder / form, window=48, fields=fields)
    alone = epoch_of(Feed(shards, 10, shuffle=True, seed=1), 1)
    feed = Feed(shards, 10, shuffle=True, seed=1, workers=3)
    assert epoch_of(feed, 1) == alone
    assert epoch_of(feed, 1, 4) == alone[4:]


def parts(folder: Path) -> list[list[int]]:
    feed = Feed(Shards(folder / "arrow", window=48), 12, shuffle=True, seed=2)
    return epoch_of(feed)


def test_ranks_read_the_parts_of_the_same_batches(folder: Path) -> None:
    alone = parts(folder)
    each = on_ranks(3, parts, folder)
    together = [[n for part in parts for n in part] for parts in zip(*each, strict=True)]
    assert together[:-1] == alone[:-1]


def test_one_giant_shard_and_one_sample_for_each_shard(tmp_path: Path) -> None:
    write_parquet(tmp_path / "giant", [500], group=8)
    write_parquet(tmp_path / "tiny", [1] * 30)
    for name, total in (("giant", 500), ("tiny", 30)):
        feed = Feed(Shards(tmp_path / name, window=64), 7, shuffle=True)
        together = [number for batch in epoch_of(feed) for number in batch]
        assert sorted(together) == list(range(total)) != together


def test_a_state_goes_on_where_it_was_and_not_with_different_shards(
    folder: Path, tmp_path: Path
) -> None:
    feed = Feed(Shards(folder / "parquet", window=64), 8, shuffle=True, seed=4)
    whole = epoch_of(feed)
    batches = feed.epoch(0)
    for _ in range(9):
        next(batches)
    state = feed.state_dict()
    resumed = Feed(Shards(folder / "parquet", window=64), 8, shuffle=True, seed=4)
    resumed.load_state_dict(state)
    assert epoch_of(resumed, *resumed.position) == whole[9:]
    other = Feed(Shards(folder / "parquet", window=65), 8, shuffle=True, seed=4)
    with pytest.raises(RunError, match="window"):
        other.load_state_dict(state)
    write_parquet(tmp_path, [*COUNTS[:-2], COUNTS[-1], COUNTS[-2]])
    moved = Feed(Shards(tmp_path, window=64), 8, shuffle=True, seed=4)
    with pytest.raises(RunError, match="shards"):
        moved.load_state_dict(state)


def test_a_copy_of_the_shards_elsewhere_goes_on(folder: Path, tmp_path: Path) -> None:
    state = Feed(Shards(folder / "parquet", window=64), 8, shuffle=True).state_dict()
    write_parquet(tmp_path, COUNTS)  # the same bytes at another time
    Feed(Shards(tmp_path, window=64), 8, shuffle=True).load_state_dict(state)


def noisy(value: Any) -> torch.Tensor:
    return torch.randn(2) + float(value)


def test_what_a_decoder_draws_is_a_function_of_the_sample(folder: Path) -> None:
    def drawn(workers: int, epoch: int, start: int = 0) -> list[torch.Tensor]:
        shards = Shards(folder / "parquet", fields=("x",), decode={"x": noisy}, window=64)
        feed = Feed(shards, 16, shuffle=True, workers=workers)
        return [batch[0] for batch in feed.epoch(epoch, start)]

    alone = drawn(0, 1)
    for other in (drawn(2, 1), alone[:3] + drawn(0, 1, 3)):
        assert all(torch.equal(a, b) for a, b in zip(alone, other, strict=True))
    assert not torch.equal(alone[0], drawn(0, 2)[0])


def test_shards_can_be_sent_to_processes_that_are_spawned(folder: Path) -> None:
    shards = Shards(folder / "parquet", window=64, decode={"x": noisy})
    feed = Feed(shards, 16, shuffle=True)
    first = next(feed.epoch(0))
    sent = pickle.loads(pickle.dumps(shards))
    again = next(Feed(sent, 16, shuffle=True).epoch(0))
    assert torch.equal(first["x"], again["x"])


def test_shards_can_be_sent_while_threads_read_them() -> None:
    """A pickle of the footers themselves raised "OrderedDict mutated during iteration"."""
    footers, done = Footers(), threading.Event()

    def read() -> None:
        for number in itertools.count():
            if done.is_set():
                return
            footers.of(File(str(number), 1, ""), object)

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        try:
            for _ in range(2000):
                pickle.loads(pickle.dumps(footers))
        finally:
            done.set()
        reading.result()


def test_memory_stays_within_two_windows(folder: Path) -> None:
    shards = Shards(folder / "parquet", window=32)
    most = max(shards._cache.samples for _ in Feed(shards, 4, shuffle=True).epoch(0))
    assert 64 <= most <= 2 * (32 + 16)
    assert 0 < shards.memory < 7000


def test_evaluation_sees_each_sample_once(folder: Path) -> None:
    shards = Shards(folder / "parquet", fields={"inputs": "pair", "targets": "x"})
    feed = Feed(shards, 32)
    model = torch.nn.Linear(2, 1)
    record = trueloop.evaluate(
        model, feed, lambda model, batch: model(batch["inputs"]).mean() * 0 + 1
    )
    assert record.samples == TOTAL
    assert record.scores["loss"] == 1


def test_windows_that_mix_too_few_blocks_are_reported_once(tmp_path: Path) -> None:
    write_parquet(tmp_path, [320], group=32)
    shards = Shards(tmp_path, window=40)
    with pytest.warns(
        RuntimeWarning, match=r"has 1\.. of the parquet blocks .* window=1024, which"
    ):
        feed = epoch_of(Feed(shards, 16, shuffle=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert epoch_of(Feed(shards, 16, shuffle=True)) == feed
        epoch_of(Feed(Shards(tmp_path, window=40), 16))
        epoch_of(Feed(Shards(tmp_path, window=200), 16, shuffle=True))
