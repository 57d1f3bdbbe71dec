"""The examples run as they stand, and do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("loop", ["torch_loop", "trueloop_loop"])
def test_both_twins_learn_the_spiral(loop: str) -> None:
    done = subprocess.run(
        [sys.executable, f"{loop}.py"],
        cwd=EXAMPLES / "spiral",
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"val_accuracy (0\.\d+)", done.stdout)
    assert found is not None, done.stdout
    assert float(found[1]) > 0.97
