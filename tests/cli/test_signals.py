"""Signals that reach a command at any moment, in this process: one line, one status."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from trueloop.cli import _one_run, _session, _signals, _training, main
from trueloop.cli._signals import Signals
from trueloop.errors import Interrupted
from trueloop.run import Run
from trueloop.tasks.spiral import Spiral

Command = Callable[..., Any]
NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]
MOMENTS = {
    "options": (_one_run, "check_free"),
    "session": (_session, "seed_everything"),
    "data": (Spiral, "splits"),
    "model": (Spiral, "model"),
    "run": (Run, "write_data"),
    "task": (Run, "write_task"),
    "film": (Spiral, "after_epoch"),
    "results": (Run, "write_results"),
    "report": (_training, "write_report"),
}
AGAIN = "no update was made, so there is nothing to resume: write the same command again"
SPIRAL = ("train", "spiral", "--epochs", "2", "--quiet", "--run", "new")


def handlers() -> list[Any]:
    return [signal.getsignal(number) for number in NUMBERS]


def signalled(function: Any, number: int, times: int = 1) -> Any:
    def changed(*args: Any, **named: Any) -> Any:
        for _ in range(times):
            signal.raise_signal(number)
        return function(*args, **named)

    return changed


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_at_any_moment_is_one_line_and_a_status(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, moment: str
) -> None:
    before, number = handlers(), NUMBERS[len(moment) % 3]
    owner, name = MOMENTS[moment]
    monkeypatch.setattr(owner, name, signalled(getattr(owner, name), number, times=2))
    said = command(*SPIRAL)
    assert said.status == 128 + number
    assert handlers() == before
    if moment == "film":  # in training a signal leaves a note, and the run ends in order
        assert said.out.splitlines()[-1] == "resume with: trueloop resume new"
        assert said.err == ""
        return
    kept = moment in ("results", "report")
    go_on = "; resume with: trueloop resume new" if kept else f"; {AGAIN}"
    if moment == "options":
        go_on = ""
    assert said.complaint == f"trueloop: interrupted{go_on}"
    assert Path("new").exists() == kept
    assert kept or list(tmp_path.iterdir()) == []


def test_an_interruption_that_an_import_turns_into_an_error_of_its_own(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def importing(*_: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None

    monkeypatch.setattr(_one_run, "check_free", importing)
    said = command(*SPIRAL)
    assert (said.status, said.complaint) == (130, "trueloop: interrupted")


class Dying:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def in_del() -> None:
    things = [Dying()]
    things.clear()


def in_code_that_goes_on() -> None:
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("swallowed", [in_del, in_code_that_goes_on])
def test_an_interruption_that_is_swallowed_comes_again(
    command: Command, monkeypatch: pytest.MonkeyPatch, swallowed: Callable[[], None]
) -> None:
    def swallowing(*_: object) -> None:
        swallowed()
        threading.Event().wait(20)

    before = signal.getsignal(signal.SIGALRM)
    monkeypatch.setattr(_one_run, "check_free", swallowing)
    said = command(*SPIRAL)
    assert (said.status, said.complaint) == (130, "trueloop: interrupted")
    assert signal.getsignal(signal.SIGALRM) == before


def test_a_clean_up_after_a_signal_has_its_time(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaned: list[bool] = []

    def cleaning(*_: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            threading.Event().wait(0.7)
            cleaned.append(True)

    monkeypatch.setattr(_one_run, "check_free", cleaning)
    assert command(*SPIRAL).status == 130
    assert cleaned == [True]


def test_a_second_signal_ends_the_process_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[object] = []
    now = [10.0]
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(os, "write", lambda handle, line: ended.append(line))
    monkeypatch.setattr(_signals.time, "monotonic", lambda: now[0])

    def work() -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            now[0] += 0.1
            signal.raise_signal(signal.SIGINT)  # timeout(1) sends one twice
            assert ended == []
            now[0] += 0.2
            signal.raise_signal(signal.SIGINT)
        return 0

    with Signals() as signals:
        assert signals.outlast(work) == 130
    assert ended == [b"trueloop: interrupted\n", 130]


def test_a_signal_while_the_line_is_printed_changes_nothing(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(self: Signals, error: BaseException) -> int:
        for number in NUMBERS:
            signal.raise_signal(number)
        return honest(self, error)

    honest = Signals._interrupted
    monkeypatch.setattr(Signals, "_interrupted", late)
    monkeypatch.setattr(_one_run, "check_free", signalled(_one_run.check_free, signal.SIGTERM))
    said = command(*SPIRAL)
    assert (said.status, said.complaint) == (143, "trueloop: interrupted")


def test_the_end_of_the_process_keeps_signals_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    registered: list[Callable[[], None]] = []
    before = handlers()
    monkeypatch.setattr(_signals.atexit, "register", registered.append)
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(sys, "argv", ["trueloop", "runs", "nowhere"])
    try:
        assert main() == 2
        signal.raise_signal(signal.SIGINT)  # the interpreter is waiting for a thread, say
        assert ended == [2]
        registered[0]()
        signal.raise_signal(signal.SIGINT)
        assert ended == [2]
        assert handlers() == [signal.SIG_IGN] * 3
    finally:
        for number, handler in zip(NUMBERS, before, strict=True):
            signal.signal(number, handler)


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Signals():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_forked_child_dies_of_its_own_signals() -> None:
    with Signals():
        child = os.fork()
        if child == 0:
            signal.raise_signal(signal.SIGINT)
            os._exit(0)
        _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGINT


def test_a_program_under_watch_has_the_handlers_that_there_were(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trueloop.cli import watch

    seen: list[Any] = []
    before = handlers()

    def prepared(words: list[str]) -> Any:
        return lambda: seen.extend(handlers()) or 7

    monkeypatch.setattr(watch, "prepared", prepared)
    assert command("watch", "x.py").status == 7
    assert seen == before
    monkeypatch.setattr(watch, "prepared", signalled(prepared, signal.SIGINT))
    said = command("watch", "x.py")
    assert (said.status, said.complaint) == (130, "trueloop: interrupted")


def test_elsewhere_than_in_the_main_thread_nothing_is_done() -> None:
    found: list[Any] = []

    def elsewhere() -> None:
        with Signals() as signals:
            found.append(signals.outlast(lambda: 5))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [5]


def test_an_interruption_says_which_signal_it_was() -> None:
    with pytest.raises(Interrupted) as raised, Signals():
        signal.raise_signal(signal.SIGTERM)
    assert raised.value.signal == signal.SIGTERM
