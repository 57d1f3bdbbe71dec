"""Every test process computes on one thread: two of them share two cores."""

from __future__ import annotations

import gc
import os
import signal

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported; subprocesses inherit it
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # where a test asks for more, none spins

from order import dealt
from warm_python import warm_forkserver, warm_workers

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a script's `pytest &`: all would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
gc.disable()  # until all tests are collected: what is imported stays
warm_forkserver()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    warm_workers()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    if processes > 1:
        items[:] = dealt(items, processes)


def pytest_collection_finish() -> None:
    gc.freeze()  # a collection of the million objects that were imported takes a second
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Once all tests of a file have run, the same with what they have imported and kept."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
