"""SIGTERM at random moments on two ranks: benchmarks/preemption.py, with a trial of three kinds."""

from __future__ import annotations

import os
import re

import pytest

from trials import trials
from warm_python import call_benchmark

TRIALS = trials(3, 12)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the trials fork")
def test_runs_ended_by_a_signal_are_saved_whole_and_resumed_exactly() -> None:
    words = ("--no-results", "--trials", str(TRIALS))
    status, out = call_benchmark("preemption", *words, timeout=600)
    assert status == 0, out
    assert out.endswith(f"{TRIALS} of {TRIALS} whole and resumed exactly\n")
    kinds = re.findall(r"^(\w[\w ]+?) +\d+ +\d+$", out, re.MULTILINE)
    assert len(kinds) == min(TRIALS, 6), "an update, an evaluation, a save, a compilation, …"
