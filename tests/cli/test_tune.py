"""`trueloop tune` as a command: what it writes trains, what it is not told right is one line."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

import warm_python
from trueloop.cli._trial import prepare
from trueloop.errors import DataError
from trueloop.tune import throughput
from trueloop.tune.changes import OTHER, SAME
from trueloop.tune.goal import Goal
from trueloop.tune.plots import draw
from trueloop.tune.proposed_config import as_config
from trueloop.tune.race import RaceResult
from trueloop.tune.results import RaceEntry, TuningResults
from trueloop.tune.throughput import Throughput
from trueloop.tune.trial_job import MEASURE, RACE, RANGE, TrainingFacts, TrialJob
from trueloop.tune.trial_processes import DONE, TrialResult, TrialSpec
from trueloop.tune.tuning import TimeBudget, Tuning

Command = Callable[..., Any]


class InThisProcess:
    """Does the trials' jobs here: what a process of their own adds has tests of its own."""

    def __init__(self, do: Callable[[Any], Any]) -> None:
        self.do = do

    def run(self, trial: TrialSpec) -> TrialResult:
        job = trial.job
        if job.kind in (MEASURE, RACE):
            job = dataclasses.replace(job, seconds=min(job.seconds, 0.4))
        return TrialResult(status=DONE, value=self.do(job))


@pytest.fixture(scope="module")
def findings(line_file: Path) -> TuningResults:
    """The line, at a rate that is far too low, tuned within a few seconds."""
    options = {"points": 1000, "lr": 1e-6, "quiet": True}
    do, facts = prepare(f"{line_file}:Line", options, 1)
    facts = dataclasses.replace(facts, compile_choices=())
    trials: Any = InThisProcess(do)
    do(TrialJob(kind=RANGE, updates=1))  # imports
    # Time enough, so that a busy machine leaves nothing out.
    budget = TimeBudget(3600.0, has_goal=True)
    goal = Goal(monitor="val_loss", value=1e9, mode="min")  # any run reaches it
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(throughput, "_ROUND", 0.05)
        tuning = Tuning(trials, facts, budget, memory=None, say=lambda text: None, goal=goal)
        found = tuning.run()
    torch.use_deterministic_algorithms(False)
    return found


def test_everything_is_measured_within_the_budget(findings: TuningResults) -> None:
    assert findings.base.rate > 0
    assert findings.range_test is not None
    assert findings.range_test.suggestion is not None
    assert findings.range_test.suggestion.rate > 1e-4
    sizes = [point.batch_size for point in findings.points]
    assert sizes[:2] == [16, 32]
    assert {row.change.name for row in findings.rows} >= {"precision bf16"}
    for row in findings.rows:
        assert row.gain is not None


def test_a_rate_that_is_far_too_low_loses_the_race(findings: TuningResults) -> None:
    proposal = findings.proposal()
    assert proposal.results == "changed"
    assert proposal.options["lr"] > 1e-4


def test_the_first_run_that_reaches_the_goal_ends_the_search_for_one(
    findings: TuningResults,
) -> None:
    ((updates, outcome),) = findings.goal_runs
    whole = findings.facts.updates_of_run(findings.how().options.get("batch_size", 0))
    assert whole is not None
    assert updates == outcome.value.updates == max(20, whole // 8)  # the first one is this long
    assert findings.proposal().options["updates"] == math.ceil(1.25 * updates)


def test_the_config_that_is_written_trains(
    findings: TuningResults, line: str, command: Command, tmp_path: Path
) -> None:
    text = as_config(line, {"points": 1000, "lr": 1e-6}, findings, 1.0)
    (tmp_path / "tuned.yaml").write_text(text)
    shown = command("train", "--config", "tuned.yaml", "--print-config")
    assert shown.status == 0
    printed = yaml.safe_load(shown.out)
    assert printed["points"] == 1000
    for name, value in findings.proposal().options.items():
        assert printed[name] == value


@pytest.mark.parametrize("task", ["spiral", "images"])
def test_a_ready_made_task_takes_the_config(task: str, command: Command, tmp_path: Path) -> None:
    given: dict[str, Any] = {"epochs": 3, "seed": 7}
    if task == "images":
        given["data"] = str(tmp_path / "photos")
        for label in range(2):
            (tmp_path / f"photos/{label}").mkdir(parents=True)
            for k in range(12):
                grey = np.random.default_rng(k).integers(100, 140, (8, 8), np.uint8)
                Image.fromarray(grey + 80 * label).save(tmp_path / f"photos/{label}/{k}.png")
    proposed = {
        "precision": "bf16", "threads": 1, "workers": 0, "compile": False, "recompute": None,
        "batch_size": 8, "lr": 2e-3, "updates": 6,
    }  # fmt: skip
    facts = TrainingFacts(
        task=task, options={"epochs": 3, "batch_size": 64}, device="cpu", cores=2, samples=None
    )
    race = [
        RaceEntry(
            name=name, options=options, results=results,
            outcome=TrialResult(
                status=DONE, value=RaceResult(loss=loss, updates=1, samples=1, seconds=1.0)
            ),
        )
        for name, options, results, loss in (
            ("plain", {}, SAME, 1.0), ("other", proposed, OTHER, 0.5),
        )
    ]  # fmt: skip
    base = Throughput(rate=1.0, rounds=[1.0])
    found = TuningResults(facts=facts, base=base, entrants=race)
    (tmp_path / "tuned.yaml").write_text(as_config(task, given, found, 1.0))
    done = command("train", "--config", "tuned.yaml", "--run", "run", "--quiet")
    assert done.status == 0, done.err
    settings = json.loads((tmp_path / "run/config.json").read_text())
    for name, value in {**proposed, "seed": 7, "epochs": None}.items():
        assert settings[name] == value
    assert '"update":6,' in (tmp_path / "run/metrics.jsonl").read_text()


def test_the_pictures_are_drawn(findings: TuningResults, tmp_path: Path) -> None:
    drawn = draw(findings, tmp_path / "lr.png", tmp_path / "batch.png")
    assert [path.name for path in drawn] == ["lr.png", "batch.png"]
    for path in drawn:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path, line: str) -> None:
    process = warm_python.Popen(
        [sys.executable, "-m", "trueloop", "tune", line, "--minutes", "1"],
        cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    for said in process.stderr:
        if said.startswith("learning-rate"):  # the training itself is measured
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "as it is" in out
    assert err.strip().splitlines()[-1].startswith("trueloop: interrupted; what was measured is in")
    assert yaml.safe_load((tmp_path / "tuned.yaml").read_text()) == {"task": line}


def test_missing_data_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere"):
        prepare("images", {"data": str(tmp_path / "nowhere")}, 1)


def test_of_missing_data_only_the_mistake_is_printed(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueloop.cli.tune._MISTAKES_SECONDS", 60.0)
    said = command("tune", "images", "--data", "nowhere")
    assert (said.status, said.out) == (2, "")
    assert said.complaint.endswith("nowhere: check --data")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--minutes", "0"], "--minutes 0 is too little to measure anything"),
        (["--minutes", "-1"], "--minutes must be"),
        (["--memory-limit-gb", "0"], "--memory-limit-gb must be above 0"),
        (["--format", "xml"], "--format: unknown format 'xml'"),
        (["--out", "taken.yaml"], "taken.yaml exists: choose a different --out"),
        (["--out", "no/tuned.yaml"], "create it, or choose a different --out"),
        (["--run", "here"], "unknown option --run"),
        (["--lr", "-1"], "--lr must be above 0"),
        (["--goal", "1", "--monitor", "train_loss"], "--goal is a score of the validation set"),
        (["--goal", "nan"], "--goal must be a number"),
    ],
)
def test_wrong_options_are_one_line(
    command: Command, tmp_path: Path, words: list[str], complaint: str
) -> None:
    (tmp_path / "taken.yaml").write_text("precious")
    said = command("tune", "spiral", *words)
    assert said.status == 2
    assert complaint in said.complaint
    assert (tmp_path / "taken.yaml").read_text() == "precious"


@pytest.mark.parametrize("rank", ["0", "1"])
def test_several_ranks_are_refused_in_one_line(
    command: Command, monkeypatch: pytest.MonkeyPatch, rank: str
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", rank)
    said = command("tune", "spiral")
    assert said.status == 2
    assert said.out == ""
    if rank == "0":
        assert "start it without torchrun" in said.complaint
    else:
        assert said.err == ""


def test_the_help_has_an_example(command: Command) -> None:
    assert "example:" in command("tune", "--help").out
    told = command("tune", "spiral", "--help").out
    assert "--minutes" in told
    assert "example:" in told
