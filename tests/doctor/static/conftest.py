"""What tests of what is around the checker share."""

from __future__ import annotations

from pathlib import Path

import pytest

from planted_faults import check_text
from trueloop.doctor import static


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker finds what is planted; the test runs in an empty folder."""
    monkeypatch.setattr(static, "check_text", check_text)
    monkeypatch.chdir(tmp_path)
