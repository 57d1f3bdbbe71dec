"""Killed at fixed-seed moments and at stages of a checkpoint's writing, a run ends as if it had
never stopped: benchmarks/kill_resume.py, with a few trials of four of its cases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the trials fork")


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: a fork of pytest's would inherit its threads."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=BENCHMARKS, capture_output=True, text=True, timeout=120
    )


def test_killed_runs_end_bitwise_equal() -> None:
    cases = ("spiral", "images", "fp16", "plateau")
    names = [word for case in cases for word in ("--case", case)]
    done = python("kill_resume.py", "--kills", "12", "--seed", "3", *names)
    assert done.returncode == 0, done.stdout + done.stderr
    stages = []
    for case in cases:
        (row,) = re.findall(rf"^{case} +3 +(\d+) +3 of 3 ((?: +\d+)+)$", done.stdout, re.MULTILINE)
        assert int(row[0]) >= 3, "each trial is killed"
        stages.append([int(count) > 0 for count in row[1].split()])
    assert sum(map(any, zip(*stages, strict=True))) >= 4, "in several stages of a write"


ONE_TRIAL = """
import os, random, sys
os.environ["OMP_NUM_THREADS"] = "1"
from pathlib import Path
from kill_trials import Reference, trial
from trueloop import seed

folder, stage, write, forgetful = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]
reference = Reference.of("dropout", folder / "reference")
if forgetful:
    seed.set_rng_state = lambda state: None
print(trial(reference, folder / "trial", random.Random(0), stage, write=write, most=1))
"""


def test_a_resume_that_forgets_the_generators_is_found_out(tmp_path: Path) -> None:
    done = python("-c", ONE_TRIAL, str(tmp_path), "done", "9", "forgetful")
    assert done.returncode == 0, done.stderr
    assert "weight: other values" in done.stdout


def test_the_best_epoch_stays_the_best_when_a_kill_meets_its_checkpoint(tmp_path: Path) -> None:
    # The 17th write is that of the fourth epoch, the run's best: on disk, and not yet marked.
    done = python("-c", ONE_TRIAL, str(tmp_path), "done", "17")
    assert done.returncode == 0, done.stderr
    assert "kills=1, mid_write=['done'], problem=None" in done.stdout


ENDED = """
import os, sys
os.environ["OMP_NUM_THREADS"] = "1"
from functools import partial
from pathlib import Path
import kill_trials
from kill_trials import Marks, Reference, difference, in_fork, outcome_in, train, wait

kill_trials.EVERY = "1 epoch"  # so that the best epoch before the last is still there
folder = Path(sys.argv[1])
reference, marks = Reference.of("spiral", folder), Marks()
for again in (1, 2):
    wait(in_fork(partial(train, "spiral", folder, again, None, marks), folder / "errors.txt"))
print(marks.count("folder made"), "writes,", difference(reference.outcome, outcome_in(folder)))
"""


def test_a_run_that_has_ended_may_be_resumed_and_nothing_is_written_anew(tmp_path: Path) -> None:
    done = python("-c", ENDED, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0 writes, None\n"


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
