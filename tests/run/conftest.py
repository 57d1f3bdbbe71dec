from collections.abc import Callable
from pathlib import Path

import pytest
from made_up import spiral

from trueloop.run import Run


@pytest.fixture
def finished(tmp_path: Path) -> Run:
    """A run of 100 epochs with every part."""
    return spiral(tmp_path / "spiral")


@pytest.fixture
def make_spiral(tmp_path: Path) -> Callable[..., Run]:
    """Makes runs by name below the test's folder."""
    return lambda name, **options: spiral(tmp_path / name, **options)
