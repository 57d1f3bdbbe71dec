"""`trueloop resume`: the same run goes on, and only a run that can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from trueloop.checkpoint import load_checkpoint
from trueloop.run import Run

Command = Callable[..., Any]


def without_times(run: Run) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in line.items() if name not in ("time", "seconds")}
        for line in run.metrics()
    ]


def test_a_resumed_run_is_the_run_that_was_never_stopped(command: Command) -> None:
    words = ["train", "spiral", "--epochs", "2", "--quiet"]
    assert command(*words, "--run", "whole").status == 0
    assert command(*words, "--run", "parts", "--max-minutes", "1e-9").status == 0
    assert Run("parts").status == "out of time"
    done = command("resume", "parts", "--max-minutes", "60")
    assert done.status == 0
    whole, parts = Run("whole"), Run("parts")
    assert parts.status == "finished"
    assert without_times(parts) == without_times(whole)
    for which in ("best", "last"):
        a = load_checkpoint(whole.checkpoints, which=which)["model"]
        b = load_checkpoint(parts.checkpoints, which=which)["model"]
        assert all(torch.equal(a[name], b[name]) for name in a)
    for name in ("scores", "best_epoch", "updates", "epochs", "confusion"):
        assert parts.results[name] == whole.results[name]


def test_a_finished_run_is_refused(command: Command, spiral_run: Path) -> None:
    said = command("resume", spiral_run)
    assert said.status == 2
    assert "has finished: there is nothing to go on with" in said.complaint


def test_no_run_there(command: Command) -> None:
    said = command("resume", "nowhere")
    assert said.status == 2
    assert "no run at nowhere" in said.complaint


def test_a_run_killed_before_its_first_checkpoint(command: Command, tmp_path: Path) -> None:
    Run.create(tmp_path / "young", config={"task": "spiral"}, environment={})
    said = command("resume", "young")
    assert said.status == 2
    assert "before it saved a checkpoint: start again with trueloop train spiral" in said.complaint


def test_a_run_of_the_library_names_no_task(command: Command, tmp_path: Path) -> None:
    Run.create(tmp_path / "own", config={"lr": 1.0}, environment={})
    said = command("resume", "own")
    assert said.status == 2
    assert "names no task" in said.complaint
