"""benchmarks/five_programs: its tables are those of the page, and ours end as torch's by hand."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from warm_python import BENCHMARKS, call

sys.path.insert(0, str(BENCHMARKS))

from five_programs import __main__ as five_programs
from five_programs.lines import lines_of_code
from five_programs.running import Ended, ran

OURS = ("trueloop", "trueloop_fit")
RESULTS = json.loads((BENCHMARKS / "results" / "five_programs.json").read_text("utf-8"))

PROGRAM = """\
'''Two
lines.'''

import os
from a import (
    b,
)

# no
x = [
    1,  # one
]


def f():
    'No.'
    return '''a

b'''
"""


def _all() -> dict[tuple[str, str], Ended]:
    return {
        (program, library): ran(path, library)
        for program in five_programs.PROGRAMS
        for library in ("torch", *OURS)
        if (path := five_programs.path_of(program, library)).exists()
    }


@functools.cache
def ended() -> dict[tuple[str, str], Ended]:
    return call(_all)


@pytest.mark.parametrize("program", five_programs.PROGRAMS)
def test_ours_ends_with_the_weights_of_the_program_by_hand(program: str) -> None:
    by_hand = ended()[program, "torch"]
    for library in OURS:
        if (program, library) in ended():
            ours = ended()[program, library]
            assert ours.steps == by_hand.steps > 50
            assert ours.scores == pytest.approx(by_hand.scores, rel=1e-6)
            assert ours.weights.keys() == by_hand.weights.keys()
            assert all(map(np.array_equal, ours.weights.values(), by_hand.weights.values()))


def test_the_page_has_the_tables_of_the_results() -> None:
    page = five_programs.PAGE.read_text("utf-8")
    written = five_programs.tables(RESULTS["programs"], RESULTS["versions"])
    assert five_programs.page_with(page, written) == page


def test_the_lines_of_the_results_are_those_of_the_programs() -> None:
    for program, rows in RESULTS["programs"].items():
        for library, row in rows.items():
            assert row["lines"] == lines_of_code(five_programs.path_of(program, library))


def test_of_the_programs_with_their_loop_ours_is_the_shortest_but_for_the_gan() -> None:
    for program, rows in RESULTS["programs"].items():
        others = [row["lines"] for library, row in rows.items() if library not in OURS]
        assert rows["trueloop"]["lines"] < min(others) + (program == "gan")


def test_lines_of_code(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    assert lines_of_code(path) == 3 + 1 + 3
