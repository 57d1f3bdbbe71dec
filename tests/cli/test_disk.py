"""A disk that can no longer be written on, in the middle of a run."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from documents import is_shown, shown
from trueloop.checkpoint import load_checkpoint
from trueloop.run import Run

Command = Callable[..., Any]


class Disk:
    """Refuses new folders among checkpoints, from the `begin`-th one on, before the `end`-th."""

    def __init__(self, begin: int, end: int, number: int) -> None:
        self.begin, self.end, self.number = begin, end, number
        self.count = 0
        self._mkdir = os.mkdir

    def mkdir(self, path: Any, *rest: Any, **more: Any) -> None:
        if Path(path).parent.name == "checkpoints":
            self.count += 1
            if self.begin <= self.count < self.end:
                raise OSError(self.number, os.strerror(self.number))
        self._mkdir(path, *rest, **more)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Disk]]:
    def broken(begin: int, end: int = 10**9, number: int = errno.EROFS) -> Disk:
        disk = Disk(begin, end, number)
        monkeypatch.setattr(os, "mkdir", disk.mkdir)
        return disk

    return broken


@pytest.fixture
def train(command: Command, line: str) -> Command:
    """Twelve updates, each with a checkpoint."""

    def run(*words: str) -> Any:
        return command("train", line, "--quiet", "--save-every", "1 update", *words)

    return run


def state_of(run: str) -> tuple[list[dict[str, Any]], dict[str, list[float]]]:
    """The log without times, and the last weights."""
    lines = [
        {name: value for name, value in line.items() if name not in ("time", "seconds")}
        for line in Run(run).metrics()
    ]
    weights = load_checkpoint(Run(run).checkpoints)["model"]
    return lines, {name: tensor.tolist() for name, tensor in weights.items()}


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EROFS, "make it writable"),
        (errno.EACCES, "make it writable"),
        (errno.ENOSPC, "free some space"),
        (errno.EIO, "check the disk"),
    ],
)
def test_stop_names_the_checkpoint_the_remedy_and_how_to_go_on(
    train: Command, command: Command, disk: Callable[..., Disk], number: int, remedy: str
) -> None:
    assert train("--run", "whole").status == 0
    broken = disk(6, number=number)
    said = train("--run", "r")
    assert said.status == 2
    assert f"cannot write {Path('r/checkpoints/e0000').absolute()}" in said.complaint
    assert f"({os.strerror(number)}): {remedy} or choose a different folder" in said.complaint
    assert said.complaint.endswith("; then resume with: trueloop resume r")
    if number == errno.ENOSPC:
        name = "test_stop_names_the_checkpoint_the_remedy_and_how_to_go_on"
        (text,) = shown(f"tests/cli/test_disk.py::{name}")
        assert is_shown(text, said.complaint, apart=True)
    assert Run("r").status == "failed"
    assert broken.count < 12, "it stopped at once"
    assert load_checkpoint(Run("r").checkpoints)["step"]["counters"][2] == 4
    broken.end = 0
    assert command("resume", "r", "--quiet").status == 0
    assert state_of("r") == state_of("whole")


def test_continue_says_so_once_and_at_the_end(
    train: Command, command: Command, disk: Callable[..., Disk]
) -> None:
    assert train("--run", "whole").status == 0
    broken = disk(6)
    said = train("--run", "r", "--on-save-error", "continue")
    assert said.status == 2, "the state at its end is not on the disk"
    first, count, last = said.err.splitlines()
    assert first.startswith("trueloop: warning: cannot write")
    assert "the run continues without this checkpoint; the last one is e0000" in first
    assert "checkpoints, up to the last, could not be written" in count
    assert last.endswith("; then resume with: trueloop resume r")
    assert Run("r").results["updates"] == 12
    assert len(Run("r").metrics()) == 15
    assert load_checkpoint(Run("r").checkpoints)["step"]["counters"][2] == 4
    broken.end = 0
    assert command("resume", "r", "--quiet").status == 0
    assert state_of("r") == state_of("whole")


def test_continue_on_a_disk_that_recovers_is_a_run_like_any_other(
    train: Command, disk: Callable[..., Disk]
) -> None:
    assert train("--run", "whole").status == 0
    disk(6, 9)
    said = train("--run", "r", "--on-save-error", "continue")
    assert said.status == 0
    first, last = said.err.splitlines()
    assert "cannot write" in first
    assert "checkpoints can be written again; 3 were lost" in last
    assert Run("r").status == "finished"
    assert state_of("r") == state_of("whole")


def test_a_run_out_of_time_whose_checkpoint_is_missing_marks_none(
    train: Command, disk: Callable[..., Disk]
) -> None:
    disk(1)
    said = train("--run", "r", "--on-save-error", "continue", "--max-minutes", "1e-9")
    assert said.status == 2
    assert "(Read-only file system): make it writable" in said.err.splitlines()[-1]
    assert not list(Path("r/checkpoints").glob("*")), "best.json would name what is not there"


def test_results_that_cannot_be_written_do_not_hide_what_stopped_the_run(
    train: Command, disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, replace = disk(6), Path.replace

    def refuse(self: Path, target: Any) -> Path:
        if broken.count >= 6:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    said = train("--run", "r")
    assert said.status == 2
    assert "checkpoints/e0000" in said.complaint
    assert said.complaint.endswith("resume with: trueloop resume r")
    assert torch.is_tensor(load_checkpoint(Run("r").checkpoints)["model"]["weight"])
