"""A worker process that is killed wherever the training is just then: one error, at a fetch."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import trueloop
from trueloop import Checkpoints, Feed, Step, evaluate, fit, load_checkpoint, supervised
from trueloop.errors import DataError
from trueloop.feed.workers import worker_death

DIED = (
    r"^a DataLoader worker died \(pid \d+: killed by signal: Killed\): see its output above; if "
    r"there is none, it may have run out of memory: use fewer workers$"
)


class Samples(Dataset[Any]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        x = torch.rand(3) + index
        return x, x.sum()


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return (Samples()[k] for k in range(64))


def kill_the_workers() -> None:
    """And go on for a while, in which torch's handler would raise."""
    workers = multiprocessing.active_children()
    assert workers
    for worker in workers:
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
    for _ in range(20):
        time.sleep(0.01)


class Net(nn.Module):
    """Kills the workers in its call number `fatal`, and then counts the call as done."""

    def __init__(self, fatal: int) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.fatal, self.begun, self.done = fatal, 0, 0

    def forward(self, x: Tensor) -> Tensor:
        self.begun += 1
        if self.begun == self.fatal:
            kill_the_workers()
        self.done += 1
        result: Tensor = self.layer(x).flatten()
        return result


def step_for(model: nn.Module) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    return Step(model, optimizer, supervised(nn.MSELoss()))


FEEDS: dict[str, Callable[[], Any]] = {
    "samples": lambda: Feed(Samples(), 8, workers=2),
    "stream": lambda: Feed(Stream(), 8, workers=1),
    "loader": lambda: DataLoader(Samples(), 8, num_workers=2),
    "living on": lambda: DataLoader(Samples(), 8, num_workers=2, persistent_workers=True),
}


@pytest.mark.parametrize("kind", FEEDS)
def test_killed_during_a_forward(kind: str) -> None:
    net = Net(fatal=3)
    step = step_for(net)
    with pytest.raises(DataError, match=DIED):
        fit(step, FEEDS[kind](), epochs=2)
    assert net.done == net.begun == step.updates == 3


def test_killed_during_an_evaluation() -> None:
    net = Net(fatal=2)
    with pytest.raises(DataError, match=DIED):
        evaluate(net, FEEDS["samples"](), supervised(nn.MSELoss()))
    assert net.done == 2
    assert net.training


def test_killed_in_the_first_evaluation_that_waits_for_the_next_epoch() -> None:
    """The workers of the training live on while another feed is evaluated: theirs is the error."""
    net = Net(fatal=9)
    x = torch.rand(16, 3)
    step = step_for(net)
    seen: list[Any] = []
    with pytest.raises(DataError, match=DIED):
        fit(step, FEEDS["samples"](), Feed((x, x.sum(1)), 8), epochs=2, sinks=[seen.append])
    assert step.updates == 8
    assert [type(record).__name__ for record in seen].count("EvalRecord") == 1


def test_killed_during_a_save_leaves_whole_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[int] = []
    honest = Checkpoints.save

    def save(self: Checkpoints, *args: Any, **named: Any) -> None:
        saved.append(1)
        if len(saved) == 2:
            kill_the_workers()
        honest(self, *args, **named)

    monkeypatch.setattr(Checkpoints, "save", save)
    step = step_for(Net(fatal=0))
    checkpoints = Checkpoints(tmp_path, keep_best=None, every="2 updates")
    with pytest.raises(DataError, match=DIED):
        fit(step, FEEDS["samples"](), epochs=2, checkpoints=checkpoints)
    state = load_checkpoint(tmp_path, which="last")
    assert step.updates == 4
    assert all(torch.equal(state["model"][k], v) for k, v in step.model.state_dict().items())


def test_in_a_loop_of_ones_own() -> None:
    net = Net(fatal=2)
    step = step_for(net)
    feed = FEEDS["samples"]()
    with pytest.raises(DataError, match=DIED):
        deque(map(step, feed.epoch(0)))
    assert net.done == 2
    with pytest.raises(DataError, match=DIED):  # its workers are not what they were
        next(feed.epoch(1))


def test_killed_while_it_is_waited_for() -> None:
    class Waiting(Samples):
        def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
            if index == 8:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__getitem__(index)

    began = time.monotonic()
    with pytest.raises(DataError, match=DIED):
        list(Feed(Waiting(), 8, workers=1))
    assert time.monotonic() - began < 4  # torch looks after its workers every five seconds


def test_another_loader_than_ours_is_torchs_own_affair() -> None:
    ours = Feed(Samples(), 8, workers=1).epoch(0)
    next(ours)
    mine = multiprocessing.active_children()
    theirs = iter(DataLoader(Samples(), 8, num_workers=1))
    next(theirs)
    (other,) = set(multiprocessing.active_children()) - set(mine)
    assert other.pid is not None
    os.kill(other.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="is killed by signal") as raised:
        deque(map(time.sleep, [0.01] * 200))
    assert not isinstance(raised.value, DataError)
    next(ours)


def test_an_error_in_a_worker_is_not_its_death() -> None:
    class Ragged(Samples):
        def __getitem__(self, index: int) -> Any:
            return torch.rand(1 + index % 2)

    torchs = RuntimeError("Caught RuntimeError in DataLoader worker process 0.\nOriginal …")
    assert worker_death(torchs) is None
    with pytest.raises(Exception, match=r"(?s)stack|equal size|collate") as raised:
        next(Feed(Ragged(), 8, workers=1).epoch(0))
    assert "died" not in str(raised.value)


@pytest.mark.parametrize(
    ("torchs", "ours"),
    [
        ("DataLoader worker (pid 7) is killed by signal: Killed. ", "pid 7: killed by signal: Kil"),
        (
            "DataLoader worker (pid 7) exited unexpectedly with exit code 1. Details are lost due "
            "to multiprocessing.",
            "(pid 7: exited unexpectedly with exit code 1): see its output above",
        ),
        ("DataLoader worker (pid(s) 7, 8) exited unexpectedly", "(pid 7, 8: exited unexpectedly)"),
        (
            "DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that "
            "dataloader's workers are out of shared memory. Please try to raise your limit.",
            "(pid 7: killed by signal: Bus error): it ran out of shared memory: use fewer workers",
        ),
    ],
)
def test_torchs_words_in_ours(torchs: str, ours: str) -> None:
    assert ours in str(worker_death(RuntimeError(torchs)))
    assert worker_death(ValueError(torchs)) is None
    assert worker_death(RuntimeError("something else")) is None


def test_arrays_need_no_worker() -> None:
    x = torch.rand(16, 3)
    before = signal.getsignal(signal.SIGCHLD)
    assert len(list(Feed(TensorDataset(x), 8, workers=2))) == 2
    assert len(list(DataLoader(TensorDataset(x), 8))) == 2
    assert len(list(trueloop.Feed(DataLoader(TensorDataset(x), 8)))) == 2
    assert signal.getsignal(signal.SIGCHLD) == before
