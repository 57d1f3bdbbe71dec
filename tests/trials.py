"""How many trials a test makes: a share of them in `make test`, all in `make test-all`."""

from __future__ import annotations

import os


def trials(some: int, all_of_them: int) -> int:
    return all_of_them if os.environ.get("TRUELOOP_ALL_TRIALS") else some
