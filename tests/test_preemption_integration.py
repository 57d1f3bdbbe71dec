"""SIGTERM at random moments on two ranks: benchmarks/preemption.py, with a trial of three kinds."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from pathlib import Path

import pytest

import warm_python

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
TRIALS = int(os.environ.get("TRUELOOP_PREEMPTION_TRIALS", "3"))
"""40 in the long form."""


def preemption(*words: str) -> tuple[int, str]:
    """The exit status of benchmarks/preemption.py, and what it prints."""
    sys.path.insert(0, str(BENCHMARKS))
    import preemption

    sys.argv[1:] = words
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = preemption.main()
    return status, out.getvalue()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the trials fork")
def test_runs_ended_by_a_signal_are_saved_whole_and_resumed_exactly() -> None:
    words = ("--no-results", "--trials", str(TRIALS))
    status, out = warm_python.call(preemption, *words, timeout=600)
    assert status == 0, out
    assert out.endswith(f"{TRIALS} of {TRIALS} whole and resumed exactly\n")
    kinds = re.findall(r"^(\w[\w ]+?) +\d+ +\d+$", out, re.MULTILINE)
    assert len(kinds) == min(TRIALS, 6), "an update, an evaluation, a save, a compilation, …"
