"""Methods that a framework calls are judged with its own loop around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from marks import marked
from trueloop.doctor.static import check_text

PROGRAMS = sorted(Path(__file__).with_name("frameworks").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path: Path) -> None:
    """A bad one has its fault at the marked line, a good one has none."""
    report = check_text(path.read_text("utf-8"), str(path), strict=True)
    assert [(found.code, found.place.line) for found in report.findings] == marked(path)
    assert bool(marked(path)) == ("_bad_" in path.name)


def test_there_are_programs_of_both_kinds() -> None:
    assert len(PROGRAMS) > 30
