"""benchmarks/doctor_mutations.py on one program: what a change does is seen, and so are faults."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the runs fork")


def test_the_faults_of_a_flat_loop_are_found() -> None:
    done = subprocess.run(
        [sys.executable, "doctor_mutations.py", "--program", "flat_mlp"],
        cwd=BENCHMARKS, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left out" not in done.stdout
    head, *_, last = re.findall(r"^(?:changed line|all) .*$", done.stdout, re.MULTILINE)
    names = re.split(r"  +", head.strip())
    total = dict(zip(names, re.split(r"  +", last.strip()), strict=True))
    assert int(total["changes"]) > 60
    assert int(total["crash"]) > 10
    assert int(total["no effect"]) > 10
    assert int(total["alarms there"]) == 0
    assert int(total["faults"]) > 10
    assert int(total["found"]) == int(total["faults"])
