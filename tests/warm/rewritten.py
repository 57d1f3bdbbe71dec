"""Write the byte code that pytest makes of the tests and of its plugins' packages, whose asserts it
rewrites: each worker would make it again where Python is to write none.

    python tests/warm/rewritten.py tests
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from _pytest.assertion import rewrite

PATTERNS = ("conftest.py", "test_*.py", "*_integration.py")


def of_tests(folder: Path) -> Iterator[Path]:
    yield from {path for pattern in PATTERNS for path in folder.resolve().rglob(pattern)}


def of_plugins() -> Iterator[Path]:
    """Those of hypothesis are a hundred."""
    for package in distributions():
        if any(point.group == "pytest11" for point in package.entry_points):
            yield from (Path(str(package.locate_file(file))) for file in package.files or ())


def write(path: Path) -> None:
    place = rewrite.get_cache_dir(path)
    written = place / (path.stem + rewrite.PYC_TAIL)
    if rewrite.try_makedirs(place) and rewrite._read_pyc(path, written) is None:
        found, code = rewrite._rewrite_test(path, None)  # type: ignore[arg-type]
        state: Any = SimpleNamespace(trace=print)
        rewrite._write_pyc(state, code, found, written)


for path in of_plugins():
    if path.suffix == ".py":
        write(path)
for folder in sys.argv[1:]:
    for path in of_tests(Path(folder)):
        write(path)
