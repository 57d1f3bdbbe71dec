"""Write the byte code that pytest makes of the tests, which rewrites their asserts: each worker
would make it again where Python is to write none.

    python tests/warm/rewritten.py tests
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from _pytest.assertion import rewrite

PATTERNS = ("conftest.py", "test_*.py", "*_integration.py")
state: Any = SimpleNamespace(trace=print)
for folder in sys.argv[1:]:
    for path in {each for pattern in PATTERNS for each in Path(folder).resolve().rglob(pattern)}:
        place = rewrite.get_cache_dir(path)
        written = place / (path.stem + rewrite.PYC_TAIL)
        if rewrite.try_makedirs(place) and rewrite._read_pyc(path, written) is None:
            found, code = rewrite._rewrite_test(path, None)  # type: ignore[arg-type]
            rewrite._write_pyc(state, code, found, written)
