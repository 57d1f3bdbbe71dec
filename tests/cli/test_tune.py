"""`trueloop tune` as a command: what it writes trains, what it is not told right is one line."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from trueloop.cli._trial import prepare
from trueloop.errors import DataError
from trueloop.tune.config import as_config
from trueloop.tune.facts import RANGE, Job
from trueloop.tune.findings import Findings
from trueloop.tune.pictures import draw
from trueloop.tune.processes import DONE, Outcome, Trial
from trueloop.tune.tuning import Budget, Tuning

Command = Callable[..., Any]


class InThisProcess:
    """Does the trials' jobs here: what a process of their own adds has tests of its own."""

    def __init__(self, do: Callable[[Any], Any]) -> None:
        self.do = do

    def run(self, trial: Trial) -> Outcome:
        job = dataclasses.replace(trial.job, seconds=min(trial.job.seconds, 0.4))
        return Outcome(status=DONE, value=self.do(job))


@pytest.fixture(scope="module")
def findings(line_file: Path) -> Findings:
    """The line, at a rate that is far too low, tuned within a few seconds."""
    options = {"points": 1000, "lr": 1e-6, "quiet": True}
    do, facts = prepare(f"{line_file}:Line", options, 1)
    facts = dataclasses.replace(facts, compile_choices=())
    trials: Any = InThisProcess(do)
    do(Job(kind=RANGE, updates=1))  # imports
    # Time enough, so that a busy machine leaves nothing out.
    budget = Budget(3600.0)
    found = Tuning(trials, facts, budget, memory=None, say=lambda text: None).run()
    torch.use_deterministic_algorithms(False)
    return found


def test_everything_is_measured_within_the_budget(findings: Findings) -> None:
    assert findings.base.rate > 0
    assert findings.range_test is not None
    assert findings.range_test.suggestion is not None
    assert findings.range_test.suggestion.rate > 1e-4
    sizes = [point.batch_size for point in findings.points]
    assert sizes[:2] == [16, 32]
    assert {row.change.name for row in findings.rows} >= {"precision bf16"}
    for row in findings.rows:
        assert row.gain is not None


def test_a_rate_that_is_far_too_low_loses_the_race(findings: Findings) -> None:
    proposal = findings.proposal()
    assert proposal.results == "changed"
    assert proposal.options["lr"] > 1e-4


def test_the_config_that_is_written_trains(
    findings: Findings, line: str, command: Command, tmp_path: Path
) -> None:
    text = as_config(line, {"points": 1000, "lr": 1e-6}, findings, 1.0)
    (tmp_path / "tuned.yaml").write_text(text)
    shown = command("train", "--config", "tuned.yaml", "--print-config")
    assert shown.status == 0
    printed = yaml.safe_load(shown.out)
    assert printed["points"] == 1000
    for name, value in findings.proposal().options.items():
        assert printed[name] == value


def test_the_pictures_are_drawn(findings: Findings, tmp_path: Path) -> None:
    drawn = draw(findings, tmp_path / "lr.png", tmp_path / "batch.png")
    assert [path.name for path in drawn] == ["lr.png", "batch.png"]
    for path in drawn:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path, line: str) -> None:
    process = subprocess.Popen(
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


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--minutes", "0"], "--minutes 0 is too little to measure anything"),
        (["--minutes", "-1"], "--minutes must be"),
        (["--memory-limit-gb", "0"], "--memory-limit-gb must be above 0"),
        (["--format", "xml"], "--format: unknown format 'xml'"),
        (["--out", "taken.yaml"], "taken.yaml exists: choose a different --out"),
        (["--out", "no/tuned.yaml"], "make it, or choose a different --out"),
        (["--run", "here"], "unknown option --run"),
        (["--lr", "-1"], "--lr must be above 0"),
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


def test_the_help_has_an_example(command: Command) -> None:
    assert "example:" in command("tune", "--help").out
    told = command("tune", "spiral", "--help").out
    assert "--minutes" in told
    assert "example:" in told
