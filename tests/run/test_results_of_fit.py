"""`fit(..., run=run)` leaves the results of the run, as `trueloop train` does."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import trueloop
from trueloop.run import Run, write_report
from trueloop.run.live_view import LiveView


def fit(run: Run, *, step: trueloop.Step | None = None, **options: Any) -> trueloop.History:
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
    feeds = [trueloop.Feed((part, part.sum(1, keepdim=True)), 8) for part in (x[:32], x[32:])]
    return trueloop.fit(step or make_step(), *feeds, run=run, **{"epochs": 3, **options})


def make_step() -> trueloop.Step:
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    loss_fn = trueloop.supervised(nn.MSELoss())
    return trueloop.Step(model, trueloop.optimizers.sgd(model, 1e-2), loss_fn, clip_norm=1.0)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run", config={"lr": 1e-2})


def test_a_fit_that_ends_is_finished_for_runs_follow_and_report(run: Run) -> None:
    step = make_step()
    fit(Run.create(run.path.with_name("before"), config={}), step=step, epochs=2)
    history = fit(run, step=step, epochs=5)
    results = run.results
    assert (results["status"], results["epochs"], results["updates"]) == ("finished", 5, 20)
    assert results["scores"] == history.records[(history.best_epoch or 0) - 2].scores
    assert results["best_epoch"] == (history.best_epoch or 0) + 1
    [summary] = [one for one in Run.find(run.path.parent) if one.path == run.path]
    assert (summary.status, summary.epochs, summary.score) == ("finished", 5, history.best)
    view = LiveView(run)
    view.read()
    assert view.end == "finished"
    page = write_report(run).read_text()
    assert "epoch 5 of 5" in page
    assert "was killed" not in page
    assert "not clipped" not in page  # the configuration does not say; the step did


def test_a_fit_that_fails_says_why(run: Run) -> None:
    def broken(record: object) -> None:
        raise OSError("the disk is on fire")

    with pytest.raises(OSError, match="on fire"):
        fit(run, sinks=[broken])
    assert (run.status, run.results["error"]) == ("failed", "the disk is on fire")


def test_a_fit_that_the_program_stops_says_why(run: Run) -> None:
    step = make_step()
    fit(run, step=step, sinks=[lambda record: step.stop("good enough")])
    assert (run.status, run.results["reason"]) == ("stopped", "good enough")
    assert "good enough" in write_report(run).read_text()


def test_who_holds_the_run_writes_its_results(run: Run) -> None:
    with run.claimed():
        fit(run)
    assert run.results == {}


def test_a_killed_fit_is_not_shown_as_running(run: Run) -> None:
    fit(run, checkpoints=trueloop.Checkpoints(run.checkpoints))
    (run.path / "results.json").unlink()
    gone = subprocess.Popen(["true"])
    gone.wait()
    (run.path / ".lock").write_text(f"pid {gone.pid} on {socket.gethostname()}\n")
    view = LiveView(run)
    view.read()
    first = view.summary()[0].plain
    assert "ended without finishing; resume with: fit(..., resume_from=load_checkpoint(" in first
    [summary] = Run.find(run.path.parent)
    assert summary.status == "unfinished"
    assert summary.score == min(line["val_loss"] for line in run.metrics() if "val_loss" in line)
    (run.path / ".lock").unlink()  # a loop of the user's own has no lock
    assert view.end is None
