"""Stop: what a signal does to a run, and that nothing of it stays behind."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import trueloop
from on_ranks import endings, on_ranks
from trueloop import ranks
from trueloop.checkpoint import Checkpoints, load_checkpoint
from trueloop.errors import Interrupted
from trueloop.records import StepRecord
from trueloop.stopping import Stop, stop

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


def test_an_interruption_that_a_compiler_makes_an_error_of_is_one() -> None:
    def act() -> None:
        send(signal.SIGINT)
        try:
            send(signal.SIGTERM)
        except KeyboardInterrupt as error:
            raise RuntimeError("the compiler failed") from error

    with pytest.raises(Interrupted) as raised:
        fit(act)
    assert raised.value.signal == signal.SIGTERM
    assert raised.value.history.status == "interrupted"


def test_the_compiler_leaves_a_signal_in_the_midst_of_a_model_to_python() -> None:
    def sends(inputs: torch.Tensor) -> torch.Tensor:
        doubled = inputs * 2
        send(signal.SIGTERM)  # Python calls the handler from here: a function like those around it
        return doubled + 1

    from torch._dynamo.utils import counters

    compiled = torch.compile(sends, backend="eager")
    previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        compiled(torch.ones(2))
        with Stop(None) as stop:
            frames = counters["frames"]["total"]
            compiled(torch.ones(2))
            assert stop.is_due()
        assert frames > 0
        assert counters["frames"]["total"] == frames, "none of ours is compiled"
    finally:
        signal.signal(signal.SIGTERM, previous)


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
    monkeypatch.setattr(trueloop.stopping.stop, "time", SimpleNamespace(monotonic=lambda: now[0]))
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


def _stops_at(signalled: int, clock: int) -> tuple[int, str, int | None]:
    """The call at which this rank is to end, with the reason; one rank gets a signal, one has an
    earlier end of its time than that."""
    with Stop(None if ranks.rank() != clock else 1e-6) as stop:
        for call in range(1, 20_000):
            if ranks.rank() == signalled and call == 3:
                send(signal.SIGUSR1)
            if stop.is_due():
                return call, stop.reason, stop.signal
    raise AssertionError("no rank has stopped")


@pytest.mark.parametrize(
    ("signalled", "clock", "reason", "number"),
    [
        (1, -1, "interrupted", signal.SIGUSR1),
        (0, -1, "interrupted", signal.SIGUSR1),
        (-1, 1, "out of time", None),
    ],
)
def test_all_ranks_end_at_one_place_for_one_reason(
    signalled: int, clock: int, reason: str, number: int | None
) -> None:
    first, second = on_ranks(2, _stops_at, signalled, clock)
    assert first == second
    assert first[1:] == (reason, number)


class _Late(torch.utils.data.Dataset[Any]):
    """Samples, one of which does not come: before its signal, and a first time."""

    def __init__(self, late: int | None) -> None:
        self.late = late

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if index == self.late:
            self.late = None
            self.asked = time.monotonic()
            threading.Timer(0.1, send, [signal.SIGTERM]).start()
            time.sleep(60.0)
        torch.manual_seed(index)
        return torch.randn(3), torch.randn(1)


def _train_on(data: _Late, folder: Path, resume_from: Any = None) -> tuple[Any, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    step = trueloop.Step(
        model, trueloop.optimizers.sgd(model, lr=0.1), trueloop.supervised(nn.MSELoss())
    )
    history = trueloop.fit(
        step,
        trueloop.Feed(data, 2, shuffle=True),
        epochs=2,
        checkpoints=Checkpoints(folder, keep_best=None),
        resume_from=resume_from,
        grace_seconds=2.0,
    )
    return history, model.weight.detach().clone()


def test_a_wait_for_data_is_given_up_in_time_to_save(tmp_path: Path) -> None:
    data = _Late(5)
    history, _ = _train_on(data, tmp_path / "a")
    assert time.monotonic() - data.asked < 2.0, "within the grace time"
    assert (history.status, history.signal) == ("interrupted", signal.SIGTERM)
    resumed, weight = _train_on(_Late(None), tmp_path / "a", load_checkpoint(tmp_path / "a"))
    straight, expected = _train_on(_Late(None), tmp_path / "b")
    assert resumed.updates == straight.updates == 12
    assert torch.equal(weight, expected)


def test_a_wait_is_given_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second cut would be raised somewhere in the end of the run."""
    monkeypatch.setattr(ranks.here, "phase", "waiting for data")
    with Stop(None, grace_seconds=60.0) as signals:

        def grow_late() -> None:
            signals._heard_at = time.monotonic() - 31.0
            signals._mind_the_time(signal.SIGTERM)
            time.sleep(0.05)

        with pytest.raises(stop.WaitInterrupted):
            grow_late()
        grow_late()


def test_a_run_that_comes_to_no_end_is_left_when_the_grace_time_is_over() -> None:
    before, began = handlers(), time.monotonic()

    def stay() -> None:
        send(signal.SIGTERM)
        time.sleep(60.0)

    with pytest.raises(Interrupted, match="no time left for a save") as raised:
        fit(stay, grace_seconds=1.0)
    assert raised.value.signal == signal.SIGTERM
    assert 0.7 < time.monotonic() - began < 1.5
    assert handlers() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a child is forked")
def test_a_signal_to_a_forked_child_is_not_one_to_its_parent() -> None:
    with Stop(None) as stop:
        child = os.fork()
        if child == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        time.sleep(0.1)
        assert not stop.is_due()
        send(signal.SIGTERM)
        assert stop.is_due()


def test_the_file_descriptor_of_another_listener_comes_back_and_hears_all() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(5.0)
    before = signal.set_wakeup_fd(ours.fileno())
    try:
        with Stop(None):
            send(signal.SIGUSR1)
            assert theirs.recv(10) == bytes([signal.SIGUSR1])
        assert signal.set_wakeup_fd(ours.fileno()) == ours.fileno()
    finally:
        signal.set_wakeup_fd(before)


def _signalled_in_a_collective(repeats: int) -> Any:
    """Rank 0 gets SIGTERM while it waits for rank 1, which computes."""
    with Stop(None) as stop:
        for call in range(1, 1000):
            if call == 3 and ranks.rank() == 0:
                for number in range(repeats):
                    threading.Timer(0.1 + 0.3 * number, send, [signal.SIGTERM]).start()
            if call == 3 and ranks.rank() == 1:
                began = time.monotonic()
                while ranks.stop_signal() is None and time.monotonic() - began < 10:
                    time.sleep(0.01)  # it is told while rank 0 cannot run a handler
                time.sleep(0.3 * (repeats - 1))
            ranks.sum_over_ranks(torch.ones(1))
            if stop.is_due():
                return call, stop.reason, stop.signal
    raise AssertionError("no rank has stopped")


@pytest.mark.parametrize("repeats", [1, 4])
def test_a_signal_to_a_rank_that_waits_for_another_is_known_to_all(repeats: int) -> None:
    first, second = on_ranks(2, _signalled_in_a_collective, repeats)
    assert first == second
    assert first[1:] == ("interrupted", signal.SIGTERM)


def _never_ends() -> None:
    try:
        with ranks.joined(torch.device("cpu")), Stop(None, grace_seconds=4.0):
            ranks.barrier("the start")
            if ranks.rank() == 0:
                os.kill(os.getpid(), signal.SIGUSR1)
                ranks.barrier("what rank 1 never comes to")
            time.sleep(60.0)
    except Interrupted as interrupted:  # as the command line does
        if ranks.speaks():
            print(interrupted, file=sys.stderr)
        sys.exit(128 + interrupted.signal)


def test_ranks_that_come_to_no_end_are_left_within_the_grace_time() -> None:
    ended = endings(2, _never_ends)
    assert [each.status for each in ended] == [128 + signal.SIGUSR1] * 2
    assert all(each.seconds < 7.0 for each in ended)
    assert "".join(each.stderr for each in ended).count("there was no time left for a save") == 1
