"""Every test process computes on one thread: two of them share two cores."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported; subprocesses inherit it

from order import dealt
from warm_python import warm_forkserver

warm_forkserver()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    if processes > 1:
        items[:] = dealt(items, processes)
