"""The examples run as they stand, and do what they say."""

from __future__ import annotations

import io
import os
import re
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from warm_python import call

EXAMPLES = Path(__file__).parent.parent / "examples"


def ran(folder: Path, script: str) -> str:
    """What a script prints that is run in its folder."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    with redirect_stdout(io.StringIO()) as out:
        runpy.run_path(script, run_name="__main__")
    return out.getvalue()


@pytest.mark.parametrize("loop", ["torch_loop", "trueloop_loop"])
def test_both_twins_learn_the_spiral(loop: str) -> None:
    out = call(ran, EXAMPLES / "spiral", f"{loop}.py")
    found = re.search(r"val_accuracy (0\.\d+)", out)
    assert found is not None, out
    assert float(found[1]) > 0.97
