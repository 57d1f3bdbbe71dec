"""benchmarks/doctor_mutations.py on one program: what a change does is seen, and so are faults."""

from __future__ import annotations

import os
import re

import pytest

from warm_python import call_benchmark

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the runs fork")


def test_the_faults_of_a_flat_loop_are_found() -> None:
    status, out = call_benchmark("doctor_mutations", "--program", "flat_mlp", timeout=300)
    assert status == 0, out
    assert "left out" not in out
    head, *_, last = re.findall(r"^(?:changed line|all) .*$", out, re.MULTILINE)
    names = re.split(r"  +", head.strip())
    total = dict(zip(names, re.split(r"  +", last.strip()), strict=True))
    assert int(total["changes"]) > 60
    assert int(total["crash"]) > 10
    assert int(total["no effect"]) > 10
    assert int(total["alarms there"]) == 0
    assert int(total["faults"]) > 10
    assert int(total["found"]) == int(total["faults"])
