"""Runs to a goal: which lengths are tried, when one is long enough, and what is proposed then."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
import yaml
from torch import nn

import trueloop
from trueloop.tune.changes import OTHER
from trueloop.tune.goal import Goal, GoalRun, run_to_end
from trueloop.tune.proposed_config import as_config
from trueloop.tune.results import TuningResults
from trueloop.tune.setup import Setup
from trueloop.tune.text_report import as_json, conclusion
from trueloop.tune.throughput import Throughput
from trueloop.tune.trial_job import TrainingFacts
from trueloop.tune.trial_processes import CRASHED, DONE, TrialResult
from trueloop.tune.tuning import next_length

ACCURACY = Goal(monitor="val_accuracy", value=0.99, mode="max")
OPTIONS: dict[str, Any] = {
    "batch_size": 100, "accumulate": 1, "lr": 1e-3, "epochs": 10, "updates": None, "tokens": None,
}  # fmt: skip


def findings(*scores: float, goal: Goal = ACCURACY, **options: Any) -> TuningResults:
    """Runs of 100, 200, 400, … updates came to these scores; the whole run has 1,000."""
    facts = TrainingFacts(
        task="own", options={**OPTIONS, **options}, device="cpu", cores=2, samples=10_000
    )
    runs = [
        (100 * 2**k, GoalRun(updates=100 * 2**k, score=score, seconds=1.0))
        for k, score in enumerate(scores)
    ]
    return TuningResults(
        facts=facts,
        base=Throughput(rate=1000.0, rounds=[1000.0]),
        goal=goal,
        goal_runs=[(n, TrialResult(status=DONE, value=run)) for n, run in runs],
    )


@pytest.mark.parametrize(
    ("before", "most", "whole", "length"),
    [
        (0, 900, 4000, 300),  # a third of the time
        (0, 10_000, 4000, 500),  # an eighth of the whole run
        (0, 900, None, 300),
        (300, 2000, 4000, 600),  # twice
        (300, 500, 4000, 500),  # all that there is time for
        (300, 350, 4000, 0),  # hardly longer than the one before
        (0, 10, 4000, 0),  # less than the fewest
        (3000, 9000, 4000, 4000),
        (0, 10_000, 40, 20),
    ],
)
def test_the_next_length(before: int, most: int, whole: int | None, length: int) -> None:
    assert next_length(before, most, whole) == length


def test_a_run_that_reaches_the_goal_is_proposed_with_a_margin() -> None:
    found = findings(0.97, 0.991)
    proposal = found.proposal()
    assert proposal.options == {"updates": 250}  # 1.25 times 200
    assert proposal.results == OTHER
    assert "200 updates reached val_accuracy 0.99 (it was 0.991)" in proposal.why
    lines = conclusion(found, 1.0)
    assert "goal val_accuracy 0.99: 100 updates from scratch reach 0.97 in 1 s" in lines
    assert "this CHANGES what is trained: a different length of the run" in lines


def test_the_config_has_one_length() -> None:
    text = as_config("own", {"epochs": 10, "lr": 1e-3}, findings(0.995), 1.0)
    assert "updates: 125  # was epochs 10" in text
    assert yaml.safe_load(text) == {"task": "own", "lr": 1e-3, "updates": 125}


@pytest.mark.parametrize("scores", [(), (0.9, 0.98), (math.nan,), (0.9, 0.9, 0.9, 0.991)])
def test_a_goal_that_is_missed_or_takes_the_whole_run_leaves_its_length(
    scores: tuple[float, ...],
) -> None:
    assert findings(*scores).proposal().options == {}  # 1.25 times 800 are the whole run


def test_a_loss_is_reached_from_above_and_a_crash_reaches_nothing() -> None:
    loss = Goal(monitor="val_loss", value=0.1, mode="min")
    found = findings(0.2, 0.09, goal=loss)
    assert found.proposal().options == {"updates": 250}
    found.goal_runs = [(100, TrialResult(status=CRASHED, reason="ended by SIGSEGV"))]
    assert found.proposal().options == {}
    assert any("100 updates from scratch: crashed: ended by SIGSEGV" in line
               for line in conclusion(found, 1.0))  # fmt: skip
    assert as_json(found, Path("t.yaml"), [])["goal_runs"] == [{"updates": 100, "status": CRASHED}]


def line_setup(rate: float) -> Setup:
    torch.manual_seed(0)
    x = torch.randn(256, 4)
    model = nn.Linear(4, 1)
    step = trueloop.Step(
        model,
        torch.optim.SGD(model.parameters(), lr=rate),
        trueloop.supervised(nn.functional.mse_loss),
        schedule=trueloop.schedules.cosine(),
    )
    step.plan(updates=40, batches=8)
    feed = trueloop.Feed((x, x.sum(1, keepdim=True)), 32, shuffle=True)
    return Setup(step=step, train=feed, val=feed, device=torch.device("cpu"), threads=1)


def test_a_run_goes_to_its_schedules_end_and_is_scored_there() -> None:
    setup = line_setup(0.1)
    run = run_to_end(setup, 40, 60.0, lambda: setup.step.updates)
    assert (run.updates, run.score) == (40, 40)
    assert setup.step.optimizers[0].param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-9)


def test_a_run_out_of_time_or_that_diverges_has_no_score() -> None:
    late = run_to_end(line_setup(0.1), 40, 0.0, lambda: 1.0)
    assert late.updates == 0
    assert math.isnan(late.score)
    wild = run_to_end(line_setup(1e30), 40, 60.0, lambda: 1.0)
    assert math.isnan(wild.score)


def test_the_page_has_the_figures_of_the_benchmark() -> None:
    root = Path(__file__).parents[2]
    kept = json.loads((root / "benchmarks/results/tune_mnist.json").read_text("utf-8"))
    before, after = (
        median(run["reached"]["seconds"] for run in kept["runs"][kind])
        for kind in ("as it was", "tuned")
    )
    assert kept["times_as_soon"] == pytest.approx(before / after, abs=0.01)
    words = f"{after:.0f} s with bf16 and {kept['tuned']['options']['updates']:,} updates, against"
    words += f" {before:.0f} s, {kept['times_as_soon']:.2f} times as soon"
    assert words in " ".join((root / "docs/tune.md").read_text("utf-8").split())
