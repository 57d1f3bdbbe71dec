"""Killed at fixed-seed moments and at stages of a checkpoint's writing, a run ends as if it had
never stopped: benchmarks/kill_resume.py, with a few trials of four of its cases."""

from __future__ import annotations

import os
import random
import re
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from trials import trials
from trueloop import seed
from warm_python import BENCHMARKS, call, call_benchmark

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the trials fork")


def test_killed_runs_end_bitwise_equal() -> None:
    cases = ("spiral", "images", "fp16", "plateau")
    names = [word for case in cases for word in ("--case", case)]
    each = trials(2, 3)
    words = ("--kills", str(each * len(cases)), "--seed", "3", *names)
    status, out = call_benchmark("kill_resume", *words)
    assert status == 0, out
    stages = []
    for case in cases:
        line = rf"^{case} +{each} +(\d+) +{each} of {each} ((?: +\d+)+)$"
        (row,) = re.findall(line, out, re.MULTILINE)
        assert int(row[0]) >= each, "each trial is killed"
        stages.append([int(count) > 0 for count in row[1].split()])
    assert sum(map(any, zip(*stages, strict=True))) >= 4, "in several stages of a write"


def one_trial(folder: Path, write: int, forgetful: bool = False) -> Any:
    """A run that is killed once, when its checkpoint of this number is written."""
    sys.path.insert(0, str(BENCHMARKS))
    from kill_trials import Reference, trial

    reference = Reference.of("dropout", folder / "reference")
    if forgetful:
        seed.set_rng_state = lambda state: None
    return asdict(trial(reference, folder / "trial", random.Random(0), "done", write=write, most=1))


def test_a_resume_that_forgets_the_generators_is_found_out(tmp_path: Path) -> None:
    assert "weight: other values" in call(one_trial, tmp_path, 9, True)["problem"]


def test_the_best_epoch_stays_the_best_when_a_kill_meets_its_checkpoint(tmp_path: Path) -> None:
    # The 17th write is that of the fourth epoch, the run's best: on disk, and not yet marked.
    found = call(one_trial, tmp_path, 17)
    assert found == {"kills": 1, "mid_write": ["done"], "problem": None}


def ended_and_resumed(folder: Path) -> tuple[int, str | None]:
    """How many checkpoints two resumes of a run that has ended write, and what they change."""
    sys.path.insert(0, str(BENCHMARKS))
    from kill_trials import Marks, Reference, difference, in_fork, outcome_in, train, wait

    reference, marks = Reference.of("spiral", folder), Marks()
    for again in (1, 2):
        wait(in_fork(partial(train, "spiral", folder, again, None, marks), folder / "errors.txt"))
    return marks.count("folder made"), difference(reference.outcome, outcome_in(folder))


def test_a_run_that_has_ended_may_be_resumed_and_nothing_is_written_anew(tmp_path: Path) -> None:
    assert call(ended_and_resumed, tmp_path) == (0, None)


def test_the_comparison_is_of_every_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    from kill_trials import difference

    nan = float("nan")
    state = {"w": torch.tensor([0.0, nan]), "scores": [1.0, nan], "n": 3}
    same = {"w": torch.tensor([0.0, nan]), "scores": [1.0, nan], "n": 3}
    assert difference(state, same) is None
    others: list[dict[str, Any]] = [
        {"w": torch.tensor([-0.0, nan])},
        {"w": torch.tensor([0.0, nan], dtype=torch.float64)},
        {"w": torch.tensor([[0.0, nan]])},
        {"scores": [1.0 + 2**-52, nan]},
        {"scores": [1.0]},
        {"scores": [1.0, nan, 2.0]},
        {"n": 3.0},
        {"more": 0},
    ]
    for other in others:
        assert difference(state, {**same, **other}), other
