"""One writer at a time in a bare folder of checkpoints."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from test_lock import Child
from torch import nn

import trueloop
from trueloop.checkpoint import LOCK, Checkpoints, load_checkpoint, store
from trueloop.errors import RunError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no POSIX locks")


def parts() -> tuple[trueloop.Step, trueloop.Feed]:
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    step = trueloop.Step(model, optimizer, trueloop.supervised(nn.MSELoss()))
    return step, trueloop.Feed((torch.rand(8, 1), torch.rand(8, 1)), 2)


def fit(saved: Checkpoints, *sinks: Any, epochs: int = 2) -> None:
    step, feed = parts()
    trueloop.fit(step, feed, epochs=epochs, checkpoints=saved, sinks=sinks)


def checkpoints(folder: Path) -> Checkpoints:
    return Checkpoints(folder, keep_best=None, every="1 update")


def test_a_second_process_is_refused_until_the_first_ends_or_dies(tmp_path: Path) -> None:
    first = Child(lambda: checkpoints(tmp_path).writing())
    assert first.said == "in"
    with pytest.raises(RunError, match="is being trained by a different process"):
        fit(checkpoints(tmp_path))
    assert not store.names_in(tmp_path)
    step, feed = parts()
    with pytest.raises(RunError, match="is being trained by a different process"):
        checkpoints(tmp_path).resume(step, feed)
    os.kill(first.pid, signal.SIGKILL)
    os.waitpid(first.pid, 0)
    fit(checkpoints(tmp_path))
    assert load_checkpoint(tmp_path)["step"]["counters"][2] == 8
    assert not (tmp_path / LOCK).exists()


def test_a_second_fit_of_one_process_is_refused_while_the_first_goes_on(tmp_path: Path) -> None:
    """As from a thread; the first one is not disturbed."""
    refused: list[RunError] = []
    first = checkpoints(tmp_path)

    def second(record: Any) -> None:
        if len(refused) < 2:
            for saved in (checkpoints(tmp_path), first):
                with pytest.raises(RunError, match="is being written by a second fit") as raised:
                    fit(saved)
                refused.append(raised.value)

    fit(first, second)
    assert all("separate folder" in str(error) for error in refused)
    assert load_checkpoint(tmp_path)["step"]["counters"][2] == 8
    step, feed = parts()
    state = load_checkpoint(tmp_path)
    trueloop.fit(
        step, feed, epochs=3, checkpoints=checkpoints(tmp_path), resume_from=state
    )  # the first has let it go


def test_of_two_loops_of_ones_own_the_earlier_is_refused_when_it_writes_again(
    tmp_path: Path,
) -> None:
    """A cell of a notebook that is run again takes the folder over."""
    (one, feed), (other, other_feed) = parts(), parts()
    first, second = checkpoints(tmp_path), checkpoints(tmp_path)
    first.resume(one, feed)
    batches = iter(feed.epoch(0))
    one(next(batches))
    first.keep(one, feed)
    first.join()
    assert second.resume(other, other_feed)
    other(next(iter(other_feed.epoch(0, start=1))))
    second.keep(other, other_feed)
    one(next(batches))
    with pytest.raises(RunError, match="is being written by a second fit or loop"):
        first.keep(one, feed)
    second.wait()
    assert load_checkpoint(tmp_path)["step"]["counters"][2] == 2


def test_a_loop_that_forgets_to_wait_lets_go_with_its_checkpoints(tmp_path: Path) -> None:
    step, feed = parts()
    saved = checkpoints(tmp_path)
    saved.resume(step, feed)
    assert (tmp_path / LOCK).exists()
    del saved
    assert not (tmp_path / LOCK).exists()
