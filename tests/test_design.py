"""docs/design.md and CONTRIBUTING.md name the files that work passes through, as traces find
them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import one_batch
import one_program
import one_watched_update

ROOT = Path(__file__).parents[1]
DESIGN = (ROOT / "docs" / "design.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
SOURCE = ROOT / "src" / "trueloop"


def section(title: str) -> str:
    """The text below a heading, up to the next of its level."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", DESIGN, re.DOTALL | re.MULTILINE)
    assert found, f"docs/design.md has no section {title!r}"
    return found[1]


def test_one_batch_passes_through_the_files_that_the_design_lists() -> None:
    found = one_batch.one_batch()
    listed = re.findall(r"^\d+\. `([\w/]+\.py)`", section("One batch's way"), re.MULTILINE)
    assert listed == one_batch.files(found)


@pytest.mark.parametrize("turn", [False, True])
def test_the_documents_count_the_files_and_functions_of_one_batch(turn: bool) -> None:
    found = one_batch.one_batch(turn=turn)
    counts = f"{len(one_batch.files(found))} files and {len(found)} functions"
    assert counts in " ".join(section("One batch's way").split())
    assert turn or counts in " ".join(CONTRIBUTING.split())


def test_one_program_passes_through_the_files_that_the_design_lists() -> None:
    found = one_program.one_program()
    text = section("One checked program's way")
    assert re.findall(r"^\d+\. `([\w/]+\.py)`", text, re.MULTILINE) == one_batch.files(found)
    counts = f"{len(one_batch.files(found))} files and {len(found)} functions"
    assert counts in " ".join(text.split())
    assert counts in " ".join(CONTRIBUTING.split())


def test_a_watched_update_passes_through_the_files_that_the_design_lists() -> None:
    found, _ = one_watched_update.parts(one_watched_update.one_watched_update())
    text = section("One watched update's way")
    assert re.findall(r"^\d+\. `([\w/]+\.py)`", text, re.MULTILINE) == one_batch.files(found)
    counts = f"{len(one_batch.files(found))} files and {len(found)} functions"
    assert counts in " ".join(text.split())
    assert counts in " ".join(CONTRIBUTING.split())


def test_the_documents_count_the_functions_of_an_update_between_samples() -> None:
    found = one_watched_update.one_watched_update(one_watched_update.BETWEEN)
    counts = f"{len(one_batch.files(found))} files and {len(set(found))} functions"
    assert counts in " ".join(section("One watched update's way").split())
    assert counts in " ".join(CONTRIBUTING.split())


def test_the_design_names_no_file_that_is_not_there() -> None:
    for name in re.findall(r"`([\w/]+\.py)`", DESIGN):
        assert (SOURCE / name).is_file() or (ROOT / name).is_file(), name
