"""What the command line's own function prints as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trueloop.cli.check import main as check_command


def run_command(folder: Path, paths: Sequence[str], jobs: int = 1) -> dict[str, Any]:
    """The object that `trueloop check PATHS --format json` prints in a folder, without the cache;
    and the `seconds` that it took."""
    out, began = io.StringIO(), time.perf_counter()
    words = [*paths, "--format", "json", "--no-cache", "--jobs", str(jobs)]
    quiet = contextlib.redirect_stderr(io.StringIO())
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), quiet:
        check_command(words)
    told: dict[str, Any] = json.loads(out.getvalue())
    return {**told, "seconds": time.perf_counter() - began}
