"""Each trial has a process of its own: whatever ends one, the next one runs."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from trueloop.errors import ConfigError, RunError
from trueloop.tune.trial_processes import TrialProcesses, TrialSpec

HELD = 2**20


def prepare(word: str) -> tuple[Callable[[str], Any], str]:
    torch.set_num_threads(1)
    held = torch.arange(HELD)  # what is read once, and shared

    def do(job: str) -> Any:
        if job == "data":
            return int(held.sum())
        if job == "pid":
            return os.getpid()
        if job == "user's mistake":
            raise ConfigError("--lr is wrong: write --lr 1")
        if job == "bug":
            raise KeyError("nothing")
        if job == "crash":
            print("the last words", flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        if job == "exit":
            os._exit(3)
        if job == "hang":
            os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "987654")
            time.sleep(1000)
        if job == "memory":
            torch.ones(2**30)  # 4 GiB
        if job == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        return f"{word} {job}"

    return do, f"read {word}"


def fails() -> tuple[Callable[[str], Any], str]:
    raise ConfigError("there are no data: give some")


@pytest.fixture(scope="module")
def processes() -> Iterator[TrialProcesses]:
    with TrialProcesses(prepare, "it") as found:
        assert found.ready() == "read it"
        yield found


def test_a_trial_runs_in_a_process_of_its_own_with_the_data(processes: TrialProcesses) -> None:
    assert processes.run(TrialSpec(job="hello")).value == "it hello"
    assert processes.run(TrialSpec(job="data")).value == HELD * (HELD - 1) // 2
    pids = {processes.run(TrialSpec(job="pid")).value for _ in range(2)} | {os.getpid()}
    assert len(pids) == 3


@pytest.mark.parametrize(
    ("job", "status", "words"),
    [
        ("user's mistake", "refused", "--lr is wrong: write --lr 1"),
        ("bug", "crashed", "KeyError: 'nothing'"),
        ("crash", "crashed", "ended by SIGSEGV: the last words"),
        ("exit", "crashed", "exit status 3"),
        ("memory", "out of memory", ""),
        ("killed", "out of memory", "the system killed it"),
    ],
)
def test_what_ends_a_trial_ends_it_alone(
    processes: TrialProcesses, job: str, status: str, words: str
) -> None:
    outcome = processes.run(TrialSpec(job=job, memory=2**30))
    assert (outcome.status, outcome.value) == (status, None)
    assert words in outcome.reason
    assert processes.run(TrialSpec(job="next")).value == "it next"


def test_a_trial_that_hangs_is_ended_with_all_that_it_started(processes: TrialProcesses) -> None:
    outcome = processes.run(TrialSpec(job="hang", seconds=0.3))
    assert outcome.status == "out of time"
    deadline = time.monotonic() + 10
    while "987654" in os.popen("ps -eo args").read() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "987654" not in os.popen("ps -eo args").read()
    assert processes.run(TrialSpec(job="next")).is_done


def test_a_trial_can_be_stopped_from_outside(processes: TrialProcesses) -> None:
    processes.start(TrialSpec(job="hang"))
    assert processes.poll(0.05) is None
    processes.stop(signal.SIGKILL)
    outcome = processes.poll(20)
    assert outcome is not None
    assert not outcome.is_done


def test_what_prepare_raises_is_raised_and_a_lost_process_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forked = multiprocessing.get_context("fork")  # it computes nothing: imports can be spared
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: forked)
    with TrialProcesses(fails) as processes:
        with pytest.raises(ConfigError, match="there are no data"):
            processes.ready()
        with pytest.raises(RunError, match="ended unexpectedly"):
            processes.ready()


def test_reading_begins_when_all_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the data comes right after it, however long the imports took."""
    forked = multiprocessing.get_context("fork")
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: forked)
    with TrialProcesses(fails) as processes:
        processes.started()
        with pytest.raises(ConfigError, match="there are no data"):
            processes.ready(10)
    with TrialProcesses(time.sleep, 60) as processes:
        processes.started()
        assert processes.ready(0.01) is None
