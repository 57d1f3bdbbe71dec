"""Batches that are fetched on a thread: the same ones, and no thread where none should be."""

from __future__ import annotations

import gc
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from trueloop import Feed
from trueloop.errors import ConfigError, DataError
from trueloop.feed import BatchDataset, ahead

ROWS = np.random.default_rng(0).standard_normal((53, 6)).astype(np.float32)
SLOW = 0.002


class Slow(BatchDataset):
    """Rows that take their time, and note where they were gathered."""

    def __init__(self, rows: Any = ROWS, seconds: float = 0.0) -> None:
        self.rows = rows
        self.seconds = seconds
        self.threads: list[str] = []
        self.calls: list[list[int]] = []

    def __len__(self) -> int:
        return len(self.rows)

    def get_batch(self, indices: Any, epoch: int) -> Any:
        time.sleep(self.seconds)
        self.threads.append(threading.current_thread().name)
        self.calls.append(indices.tolist())
        return torch.from_numpy(self.rows[indices]) + epoch, torch.from_numpy(indices.copy())


def noisy(batch: Any, draws: Any) -> Any:
    first = batch[0] if isinstance(batch, tuple) else batch
    return first + draws.normal(1), draws(2)


def threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "trueloop-feed"]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    if threads():
        gc.collect()
    assert not threads()


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> np.memmap[Any, Any]:
    path = tmp_path_factory.mktemp("rows") / "rows"
    ROWS.tofile(path)
    return np.memmap(path, dtype=np.float32, mode="r", shape=ROWS.shape)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["map", "batches", "tensor"]),
    batch_size=st.integers(1, 60),
    shuffle=st.booleans(),
    transform=st.booleans(),
    stops=st.lists(st.integers(0, 12), max_size=4),
    drop=st.booleans(),
)
def test_the_same_batches_whatever_the_breaks(
    mapped: Any,
    kind: str,
    batch_size: int,
    shuffle: bool,
    transform: bool,
    stops: list[int],
    drop: bool,
) -> None:
    """A run that is broken off and gone on with, as it would be after `load_state_dict`, in a feed
    that fetches ahead, and in one that does not."""

    def run(fetch_ahead: bool) -> list[Any]:
        seen: list[Any] = []
        state: dict[str, Any] | None = None
        for stop in [*stops, 1000]:
            data = {"map": mapped, "batches": Slow(), "tensor": torch.from_numpy(ROWS)}[kind]
            feed = Feed(
                data,
                batch_size,
                shuffle=shuffle,
                seed=4,
                transform=noisy if transform else None,
                drop_last=drop and batch_size <= len(ROWS),
                fetch_ahead=fetch_ahead,
            )
            if state is not None:
                feed.load_state_dict(state)
            while feed.position[0] < 2:
                for batch in feed.epoch(*feed.position):
                    seen.append(batch)
                    seen.append(feed.state_dict())
                    stop -= 1
                    if not stop:
                        break
                if stop == 0:
                    break
            state = feed.state_dict()
        return seen

    for one, other in zip(run(True), run(False), strict=True):
        if isinstance(one, dict):
            assert one == other
        else:
            torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert not threads()


def test_it_is_one_batch_ahead_and_no_more() -> None:
    data = Slow()
    feed = Feed(data, 10, fetch_ahead=True)
    epoch = feed.epoch(0)
    assert not threads()  # nothing is fetched that nobody has asked for
    next(epoch)
    deadline = time.monotonic() + 5
    while len(data.calls) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.01)
    assert len(data.calls) == 2
    assert feed.position == (0, 1)
    assert set(data.threads) == {"trueloop-feed"}
    epoch.close()
    assert not threads()
    assert len(list(feed.epoch(*feed.position))) == 5


def test_the_thread_ends_with_the_pass() -> None:
    feed = Feed(Slow(), 10, fetch_ahead=True)
    for _ in feed.epoch(0):
        assert len(threads()) == 1
        break
    assert not threads()

    def fail() -> None:
        for _ in feed.epoch(0):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        fail()
    del caught
    gc.collect()
    assert not threads()
    circle: list[Any] = [feed.epoch(0)]
    circle.append(circle)
    next(circle[0])
    assert threads()
    del circle
    gc.collect()
    assert not threads()
    list(feed.epoch(0))
    assert not threads()


def test_a_thread_that_nobody_asks_ends_and_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_IDLE", 0.001)
    feed = Feed(Slow(), 10, fetch_ahead=True)
    epoch = feed.epoch(0)
    seen = [next(epoch)[1]]
    deadline = time.monotonic() + 5
    while threads() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not threads()
    seen += [rows for _, rows in epoch]
    assert torch.cat(seen).tolist() == list(range(53))


def test_an_error_comes_where_its_batch_would() -> None:
    class Broken(Slow):
        def get_batch(self, indices: Any, epoch: int) -> Any:
            if 20 in indices:
                raise ValueError("no such row")
            return super().get_batch(indices, epoch)

    feed = Feed(Broken(), 10, fetch_ahead=True)
    epoch = feed.epoch(0)
    assert [next(epoch)[1][0] for _ in range(2)] == [0, 10]
    time.sleep(0.01)  # it has failed by now
    assert feed.position == (0, 2)
    with pytest.raises(DataError, match=r"Broken\.get_batch .*sample 20 .* fetch_ahead=False"):
        next(epoch)
    assert feed.position == (0, 2)

    def exits(batch: Any, draws: Any) -> Any:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        next(Feed(ROWS, 10, transform=exits, fetch_ahead=True).epoch(0))


def test_no_thread_when_the_process_is_forked() -> None:
    feed = Feed(Slow(seconds=SLOW), 5, fetch_ahead=True)
    epoch = feed.epoch(0)
    seen = [next(epoch)[1]]
    child = os.fork()
    if not child:
        left = len(threads()) + len(ahead._running)
        rest = [rows for _, rows in epoch]  # it can be gone on with there, too
        os._exit(left or (10 if len(rest) != 10 else 0))
    assert os.waitpid(child, 0)[1] == 0
    seen += [rows for _, rows in epoch]
    assert torch.cat(seen).tolist() == list(range(53))


def test_workers_that_are_forked_meanwhile() -> None:
    feed = Feed(Slow(seconds=SLOW), 5, fetch_ahead=True)
    samples = Feed([torch.tensor(k) for k in range(11)], 1, workers=1)
    pairs = zip(feed.epoch(0), samples.epoch(0), strict=True)
    assert [int(one[0][1][0]) // 5 for one in pairs] == list(range(11))


def measured(monkeypatch: pytest.MonkeyPatch, cores: int = 4) -> Callable[..., bool]:
    """Whether a feed went over to a thread, with so many cores for one thread of torch's."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(cores))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)

    def goes(feed: Feed) -> bool:
        found = False
        for _ in feed.epoch(0):
            found |= bool(threads())
        return found

    return goes


def test_it_is_decided_by_what_the_first_batches_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    goes = measured(monkeypatch)
    slow = Slow(seconds=SLOW)
    feed = Feed(slow, 5)
    assert goes(feed)
    assert slow.threads == ["MainThread"] * 6 + ["trueloop-feed"] * 5
    assert goes(feed)
    assert slow.threads[11:] == ["trueloop-feed"] * 11
    monkeypatch.setattr(ahead, "WORTH", 10.0)
    quick = Slow()
    feed = Feed(quick, 5)
    assert not goes(feed)
    # Decided: nothing stands between the feed and its data any more.
    assert feed._fetch_ahead.wanted is False
    assert not goes(Feed(ROWS, 5))
    assert Feed(ROWS, 5)._fetch_ahead.wanted is False


def test_without_a_spare_core_only_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(batch: Any, draws: Any) -> Any:
        end = time.thread_time() + SLOW
        while time.thread_time() < end:
            pass
        return batch

    monkeypatch.setattr(ahead, "_LOOKED_AT", 3)
    goes = measured(monkeypatch, cores=1)
    assert goes(Feed(Slow(seconds=SLOW), 5))
    # As on a quiet machine: other processes may have had the core meanwhile.
    monkeypatch.setattr(time, "perf_counter", time.thread_time)
    assert not goes(Feed(ROWS, 5, transform=busy))
    assert goes(Feed(ROWS, 5, transform=busy, fetch_ahead=True))
    assert not goes(Feed(Slow(seconds=SLOW), 5, fetch_ahead=False))


@pytest.mark.parametrize(
    "draw", [lambda: torch.rand(1), lambda: np.random.rand(), lambda: random.random()]
)
def test_what_draws_from_the_process_stays_in_the_loop(
    monkeypatch: pytest.MonkeyPatch, draw: Callable[[], Any]
) -> None:
    def transform(batch: Any, draws: Any) -> Any:
        time.sleep(SLOW)
        draw()
        return batch

    assert not measured(monkeypatch)(Feed(ROWS, 5, transform=transform))


def test_modes_of_the_loops_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed(Slow(), 10, fetch_ahead=True)
    with torch.autocast("cpu", torch.bfloat16):
        for _ in feed.epoch(0):
            assert not threads()
    weight = torch.ones(6, requires_grad=True)
    graded = Feed(ROWS, 10, transform=lambda batch, draws: batch * weight, fetch_ahead=True)
    with torch.no_grad():
        assert not next(graded.epoch(0)).requires_grad
    with torch.inference_mode():
        assert next(graded.epoch(0)).is_inference()
    assert next(graded.epoch(0)).requires_grad


def test_the_users_code_never_runs_twice_at_once() -> None:
    class Shared(Slow):
        inside = 0

        def get_batch(self, indices: Any, epoch: int) -> Any:
            Shared.inside += 1
            time.sleep(SLOW)
            assert Shared.inside == 1
            Shared.inside -= 1
            return super().get_batch(indices, epoch)

    train, val = Feed(Shared(), 8, fetch_ahead=True), Feed(Shared(), 8, fetch_ahead=False)
    for _ in train.epoch(0):
        assert len(next(val.epoch(0))[1]) == 8


def test_a_feed_inside_a_transform_does_not_wait_for_itself() -> None:
    partners = Feed(Slow(), 10, shuffle=True, fetch_ahead=True)
    coming = partners.epoch(0)
    feed = Feed(ROWS, 10, transform=lambda batch, draws: batch + next(coming)[0], fetch_ahead=False)
    plain = [rows for rows, _ in Feed(Slow(), 10, shuffle=True).epoch(0)]
    expected = [a + b for a, b in zip(Feed(ROWS, 10).epoch(0), plain, strict=True)]
    assert all(torch.equal(a, b) for a, b in zip(feed.epoch(0), expected, strict=True))
    coming.close()


def test_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    rows = [rows for _, rows in Feed(Slow(), 10, fetch_ahead=True).epoch(0)]
    assert torch.cat(rows).tolist() == list(range(53))


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="fetch_ahead=1 is neither True nor False"):
        Feed(ROWS, 4, fetch_ahead=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="write workers=1 or more"):
        Feed([1, 2, 3], 2, fetch_ahead=True)
    with pytest.raises(ConfigError, match="no fetch_ahead with it"):
        Feed(torch.utils.data.DataLoader([1, 2]), fetch_ahead=True)
    assert len(list(Feed([1, 2, 3], 2, fetch_ahead=False))) == 2


def test_a_device_that_the_thread_cannot_use_is_an_error_and_no_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(device: Any) -> Any:
        raise RuntimeError(f"no {device}")

    monkeypatch.setattr(torch.cuda, "device", refused)
    fetcher = ahead._Fetcher(iter([1, 2]), torch.device("cuda:0"))
    fetcher.ask()
    with pytest.raises(RuntimeError, match="no cuda:0"):
        fetcher.take()
    fetcher.close()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", ["map", "batches", "tensor"])
def test_on_cuda(mapped: Any, kind: str) -> None:
    data = {"map": mapped, "batches": Slow(), "tensor": torch.from_numpy(ROWS)}[kind]
    feeds = [
        Feed(data, 7, shuffle=True, transform=noisy, device="cuda", fetch_ahead=wanted)
        for wanted in (True, False)
    ]
    for one, other in zip(feeds[0].epoch(1), feeds[1].epoch(1), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
        assert one[0].is_cuda
