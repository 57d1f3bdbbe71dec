"""FIFOs, devices and folders where a file should be: named, and never waited for."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def _hangs_fail() -> Iterator[None]:
    def late(number: int, frame: Any) -> None:
        raise AssertionError("it waits for a FIFO")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def stopped(spiral_run: Path, tmp_path: Path) -> Path:
    """The spiral as if it had been killed before its results: `resume` has something to do."""
    shutil.copytree(spiral_run, tmp_path / "r")
    Path("r/results.json").unlink()
    return Path("r")


def become_fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


@pytest.mark.parametrize("verb", ["resume", "evaluate", "report", "runs", "predict"])
@pytest.mark.parametrize(
    "name",
    [
        "config.json", "environment.json", "data.json", "task.json", "findings.json",
        "metrics.jsonl", "results.json", ".lock", "checkpoints/best.json",
        "checkpoints/*/manifest.json", "checkpoints/*/state.pt",
    ],
)  # fmt: skip
def test_a_fifo_in_a_run(command: Command, stopped: Path, verb: str, name: str) -> None:
    for path in [*stopped.glob(name)] or [stopped / name]:
        become_fifo(path)
    more = ["--data", "points.csv", "--out", "p.csv"] if verb == "predict" else []
    said = command(verb, stopped, *more)
    assert said.status in (0, 2)
    assert "Traceback" not in said.err
    if verb == "resume" and name != "checkpoints/best.json":
        assert said.status == 2
        assert "FIFO" in said.complaint, said.complaint


@pytest.mark.parametrize("task", ["table", "images"])
@pytest.mark.parametrize("kind", ["a FIFO", "a character device"])
def test_data_that_is_no_file(command: Command, task: str, kind: str) -> None:
    path = "/dev/zero"
    if kind == "a FIFO":
        path = "data.csv"
        os.mkfifo(path)
    more = ["--target", "y"] if task == "table" else []
    said = command("train", task, "--data", path, "--run", "r", *more)
    assert said.status == 2
    assert kind in said.complaint
    assert not Path("r").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["train", "spiral", "--config", "fifo"], "it is a FIFO, not a regular file"),
        (["train", "fifo.py:Task"], "fifo.py is a FIFO"),
        (["resume", "fifo"], "fifo is a FIFO, not a run directory"),
        (["train", "spiral", "--run", "fifo"], "fifo is a FIFO"),
    ],
)
def test_a_fifo_as_an_argument(command: Command, words: list[str], says: str) -> None:
    os.mkfifo("fifo")
    os.mkfifo("fifo.py")
    said = command(*words)
    assert said.status == 2
    assert says in said.complaint


def test_weights_in_a_fifo(tmp_path: Path) -> None:
    import torch

    from trueloop import errors, load_weights

    os.mkfifo(tmp_path / "w.safetensors")
    with pytest.raises(errors.RunError, match="it is a FIFO, not a regular file"):
        load_weights(torch.nn.Linear(1, 1), tmp_path / "w.safetensors")
