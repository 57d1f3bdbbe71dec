"""SIGTERM at random moments on two ranks: benchmarks/preemption.py, with a trial of three kinds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
TRIALS = int(os.environ.get("TRUELOOP_PREEMPTION_TRIALS", "3"))
"""40 in the long form."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the trials fork")
def test_runs_ended_by_a_signal_are_saved_whole_and_resumed_exactly() -> None:
    command = [sys.executable, "preemption.py", "--no-results", "--trials", str(TRIALS)]
    done = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(f"{TRIALS} of {TRIALS} whole and resumed exactly\n")
    kinds = re.findall(r"^(\w[\w ]+?) +\d+ +\d+$", done.stdout, re.MULTILINE)
    assert len(kinds) == min(TRIALS, 6), "an update, an evaluation, a save, a compilation, …"
