"""Whole programs whose text shows what a run alone does not, or that do not run by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from marks import marked
from trueloop.doctor.static import check_text

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_what_is_marked_is_found(path: Path) -> None:
    report = check_text(path.read_text("utf-8"), str(path), strict=True)
    assert [(found.code, found.place.line) for found in report.findings] == marked(path)
    assert bool(marked(path)) == path.stem.startswith("bad")
