"""Stop: what a signal does to a run, and that nothing of it stays behind."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import trueloop
from trueloop.checkpoint import Checkpoints, load_checkpoint
from trueloop.errors import Interrupted
from trueloop.records import StepRecord
from trueloop.stopping import Stop

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]


def handlers() -> list[Any]:
    return [signal.getsignal(number) for number in SIGNALS]


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def fit(act: Any, *, at: tuple[int, int] = (1, 2), epochs: int = 3, **more: Any) -> Any:
    """Train two epochs and more of four batches; `act()` after the micro-batch `at`."""
    torch.manual_seed(0)
    inputs = torch.randn(32, 3)
    train = trueloop.Feed((inputs, inputs.sum(1, keepdim=True)), 8)
    model = nn.Linear(3, 1)
    step = trueloop.Step(
        model,
        trueloop.optimizers.sgd(model, lr=0.1),
        trueloop.supervised(nn.MSELoss()),
        accumulate=2,
    )

    def sink(record: Any) -> None:
        if isinstance(record, StepRecord) and (record.epoch, record.batch) == at:
            act()

    return trueloop.fit(step, train, epochs=epochs, sinks=[sink], **more)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_run_saved_and_leaves_no_handler(number: int, tmp_path: Path) -> None:
    before = handlers()
    checkpoints = Checkpoints(tmp_path, keep_best=None)
    history = fit(lambda: send(number), checkpoints=checkpoints)
    assert (history.status, history.signal) == ("interrupted", number)
    assert handlers() == before
    # Taken inside the window, whose first half is saved with it.
    assert load_checkpoint(tmp_path)["step"]["counters"] == [1, 3, 3, 0]
    assert load_checkpoint(tmp_path)["step"]["gradients"]


def test_a_run_that_comes_to_its_end_was_not_interrupted() -> None:
    history = fit(lambda: None)
    assert (history.status, history.signal) == ("finished", None)
    ended = fit(lambda: send(signal.SIGTERM), at=(2, 3))
    assert (ended.status, ended.signal) == ("interrupted", signal.SIGTERM)


@pytest.mark.parametrize(
    ("first", "second"),
    [(signal.SIGUSR1, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)],
)
def test_a_second_signal_ends_at_once(first: int, second: int) -> None:
    before, reached = handlers(), []

    def twice() -> None:
        send(first)
        reached.append("first")
        send(second)
        reached.append("second")

    with pytest.raises(KeyboardInterrupt) as raised:
        fit(twice)
    assert isinstance(raised.value, Interrupted)
    assert raised.value.signal == second
    assert reached == ["first"]
    assert handlers() == before


def test_one_signal_sent_twice_at_once_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """timeout(1) sends its signal to the process and then to the process's group."""
    now = [100.0]
    monkeypatch.setattr(trueloop.stopping, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with Stop(None) as stop:
        send(signal.SIGTERM)
        now[0] += 0.01
        send(signal.SIGTERM)
        assert stop.is_due()
        assert (stop.reason, stop.signal) == ("interrupted", signal.SIGTERM)
        now[0] += 1
        with pytest.raises(Interrupted):
            send(signal.SIGTERM)


def test_the_users_own_handlers_come_back() -> None:
    heard: list[int] = []
    previous = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    try:
        history = fit(lambda: send(signal.SIGUSR1))
        assert history.signal == signal.SIGUSR1
        assert heard == []
        send(signal.SIGUSR1)
        assert heard == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, previous)


def test_handlers_come_back_after_an_error_too() -> None:
    before = handlers()
    with pytest.raises(ZeroDivisionError):
        fit(lambda: 1 / 0)
    assert handlers() == before


def test_another_thread_leaves_the_signals_alone() -> None:
    before, seen = handlers(), []
    thread = threading.Thread(target=fit, args=(lambda: seen.append(handlers()),))
    thread.start()
    thread.join()
    assert seen == [before]


def test_the_reason_is_settled_only_where_it_is_asked() -> None:
    with Stop(None) as stop:
        send(signal.SIGINT)
        assert (stop.reason, stop.signal) == ("", None)
        assert stop.is_due()
        assert stop.signal == signal.SIGINT
