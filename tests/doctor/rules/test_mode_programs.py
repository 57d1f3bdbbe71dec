"""Whole programs whose text shows that a pass is right, which a run alone does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueloop.doctor.static import check_text

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_nothing_is_found(path: Path) -> None:
    report = check_text(path.read_text("utf-8"), str(path), strict=True)
    assert [(found.code, found.place.line) for found in report.findings] == []
