"""The corpus: a bad program raises exactly its code at the marked line, a good one nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from marks import marked
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.static import check_text

CORPUS = Path(__file__).parent / "corpus"
# TL001 is about comments, which a program alone has no say in: see source/test_checking.py.
PROGRAMS = sorted(path for path in CORPUS.glob("TL*/*.py") if path.parent.name != "TL001")
ADVISED = {
    "TL205-good_wrapper_has_its_own": [("TL205", 11)],
    "TL403-good_log_softmax_into_cross_entropy": [("TL401", 30)],
    "TL709-good_as_long_as_a_file": [("TL709", 28)],
}
"""Right in what they compute; what is said of them is how to write it better."""
IN_NUMBERS = frozenset(
    {
        "TL408-bad_cross_entropy_by_hand",
        "TL510-bad_batches_of_a_token_budget",
        "TL510-bad_chunks_sorted_by_length",
        "TL510-bad_inner_loop_with_a_scaler",
        "TL510-bad_sum_over_its_own_count",
        "TL603-bad_step_size_of_updates",
        "TL603-bad_warm_up_by_a_function",
        "TL605-bad_cosine_in_a_while_loop",
        "TL605-bad_function_of_one_epoch",
        "TL605-bad_stops_when_it_is_good",
        "TL801-bad_epoch_in_the_name",
        "TL801-bad_head_of_before_and_step_in_the_name",
    }
)
"""Of rules that read source too: faults that only show in the numbers of a run."""


def raised(path: Path) -> list[tuple[str, int]]:
    """Codes and lines of what is found."""
    report = check_text(path.read_text(encoding="utf-8"), str(path), strict=True)
    return sorted((found.code, found.place.line) for found in report.findings)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_program(path: Path) -> None:
    wanted = marked(path)
    if path.stem.startswith("good"):
        assert not wanted, "a good program has no marked line"
        assert raised(path) == ADVISED.get(f"{path.parent.name}-{path.stem}", [])
    else:
        assert len(wanted) == 1, "a bad program holds one fault, marked with `# <- TLxxx`"
        assert wanted[0][0] == path.parent.name
        # What only shows in numbers is found by watching alone: see live/.
        name = f"{path.parent.name}-{path.stem}"
        read = "S" in BY_CODE[path.parent.name].seen and name not in IN_NUMBERS
        assert raised(path) == (wanted if read else [])


PROGRAMS_TO_CHANGE = Path(__file__).parents[2] / "benchmarks" / "doctor_programs"


@pytest.mark.parametrize(
    "path", sorted(PROGRAMS_TO_CHANGE.glob("*.py")), ids=lambda path: path.stem
)
def test_the_programs_that_the_benchmark_changes_are_correct(path: Path) -> None:
    assert raised(path) == []


def test_there_are_enough() -> None:
    bad = [path for path in PROGRAMS if path.stem.startswith("bad")]
    good = [path for path in PROGRAMS if path.stem.startswith("good")]
    assert len(bad) >= 120
    assert len(good) >= 120
