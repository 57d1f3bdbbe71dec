"""The progress bar of data that are read."""

from __future__ import annotations

import random
import sys

import pytest

from trueloop.tasks.progress_bar import progress_bar


def test_it_draws_nothing_from_the_generators(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that reads its data from a cache, without a bar, is the run that did not."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    state = random.getstate()
    with progress_bar("rows", 100, True) as advance:
        advance(100)
    assert "rich.style" in sys.modules  # which draws when it is imported
    assert random.getstate() == state
