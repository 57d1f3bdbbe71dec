"""`trueloop resume`: the same run goes on, and only a run that can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
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
    some = ("--max-minutes", "1e-9", "--profile", "9")
    part = command(*words, "--run", "parts", *some)
    assert part.status == 0
    assert "no update was profiled: the run ended after 1 update, and" in part.err
    assert Run("parts").status == "out of time"
    done = command("resume", "parts", "--max-minutes", "60")
    assert done.status == 0
    whole, parts = Run("whole"), Run("parts")
    assert parts.profile is not None
    # Of the 63 updates that were left, after 27 of them.
    assert (parts.profile["first"], parts.profile["updates"]) == (29, 9)
    assert "profile parts/profile/trace.json.gz: 9 updates, " in done.out
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
    assert "has finished: there is nothing to resume" in said.complaint


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


@pytest.mark.parametrize("name", ["data.json", "task.json", "environment.json"])
def test_a_damaged_file_is_said_before_anything_is_trained(
    command: Command, line: str, name: str
) -> None:
    words = ["train", line, "--quiet", "--run", "r"]
    assert command(*words, "--max-minutes", "1e-9").status == 0
    before, log = Path("r", name).read_text(), without_times(Run("r"))
    Path("r", name).write_text('{"points": ')
    for again in (["resume", "r"], [*words, "--resume", "auto"]):
        said = command(*again)
        assert said.status == 2
        assert f"{name} is corrupt" in said.complaint
        assert said.complaint.endswith("delete it; a resume then writes it again")
        assert without_times(Run("r")) == log
    Path("r", name).unlink()
    assert command("resume", "r", "--quiet").status == 0
    if name != "environment.json":  # it has the time
        assert Path("r", name).read_text() == before
    assert Run("r").environment["torch"] == torch.__version__


def test_a_task_whose_model_has_changed(command: Command, line: str) -> None:
    assert command("train", line, "--quiet", "--run", "r", "--max-minutes", "1e-9").status == 0
    config = Path("r/config.json")
    other = Path("other.py")
    other.write_text(
        Path(line.rpartition(":")[0])
        .read_text()
        .replace("nn.Linear(1, 1)", "nn.Sequential(nn.Linear(1, 1))")
    )
    config.write_text(config.read_text().replace(line, f"{other.absolute()}:Line"))
    said = command("resume", "r", "--quiet")
    assert said.status == 2
    assert "does not fit this model and optimizer" in said.complaint


LIMITED = """
import torch
from line_task import Line


class Limited(Line):
    "A straight line on a device with room for 6 samples."

    def loss_fn(self):
        honest = super().loss_fn()

        def loss_fn(model, batch):
            if model.training and len(batch[0]) > 6:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            return honest(model, batch)

        return loss_fn
"""


def test_a_run_whose_batches_are_split_goes_on_and_says_so_once(
    command: Command, line: str, line_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(line_file.parent)
    Path("limited.py").write_text(LIMITED, "utf-8")
    words = ["limited.py:Limited", "--quiet"]
    failed = command("train", *words, "--run", "failed")
    assert (failed.status, failed.complaint.count("\n")) == (2, 0)
    assert "out of memory" in failed.complaint
    assert command("train", line, "--quiet", "--run", "whole").status == 0
    parted = command("train", *words, "--run", "parts", "--on-oom", "accumulate")
    assert parted.status == 0
    assert parted.err.count("out of memory with a batch of 16 samples: such batches are now") == 1
    stopped = ("--on-oom", "accumulate", "--max-minutes", "1e-9")
    assert command("train", *words, "--run", "two", *stopped).status == 0
    resumed = command("resume", "two", "--max-minutes", "60")
    assert (resumed.status, "out of memory" in resumed.err) == (0, False)
    weights = [
        load_checkpoint(Run(run).checkpoints, which="last")["model"]
        for run in ("whole", "parts", "two")
    ]
    for name, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][name], tensor)
        assert torch.equal(weights[2][name], weights[1][name])
