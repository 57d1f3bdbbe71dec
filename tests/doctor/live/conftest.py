"""A watcher of this process, which must not fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from trueloop.doctor.live.watcher import Watcher


@pytest.fixture
def watcher(tmp_path: Path) -> Iterator[Watcher]:
    """With all rules; computations without finite numbers are written to `tmp_path`."""
    torch.manual_seed(0)
    watcher = Watcher()
    watcher.nonfinite.bundles = str(tmp_path)
    watcher.start()
    yield watcher
    watcher.stop()
    assert watcher.hub.errors == []
