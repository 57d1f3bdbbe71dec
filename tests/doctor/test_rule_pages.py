"""Every rule has a page, programs that it finds fault with, and programs that it must not."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest

from trueloop.doctor.rules.catalogue import ENTRIES, Entry
from trueloop.doctor.rules.loading import load
from trueloop.doctor.rules.pages import (
    GROUPS,
    HEADINGS,
    documents,
    group_of,
    main,
    page_of,
    write_documents,
)

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
RULES = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.code)
# What is seen in data alone is about tables and images, and no program's fault.
OF_PROGRAMS = pytest.mark.parametrize(
    "entry", [entry for entry in ENTRIES if entry.seen != "D"], ids=lambda entry: entry.code
)


@RULES
def test_the_page_has_all_its_parts(entry: Entry) -> None:
    page = page_of(entry)
    assert tuple(page.sections) == HEADINGS
    assert all(page.sections.values())
    assert page.summary.endswith(".")
    assert "|" not in page.summary  # it stands in a table
    for heading in ("Wrong", "Right"):
        blocks = re.findall(r"```python\n(.*?)```", page.sections[heading], re.DOTALL)
        assert blocks, f"{heading} shows no code"
        for block in blocks:
            ast.parse(textwrap.dedent(block))
    assert re.search(r"https://", page.sections["Sources"])


@OF_PROGRAMS
def test_the_detector_is_in_the_file_of_its_name(entry: Entry) -> None:
    assert load(entry).code == entry.code
    assert group_of(entry.code) in GROUPS.values()


@OF_PROGRAMS
def test_the_corpus_has_it_in_several_styles(entry: Entry) -> None:
    names = [path.name for path in (CORPUS / entry.code).glob("*.py")]
    assert sum(name.startswith("bad_") for name in names) >= 2
    assert sum(name.startswith("good_") for name in names) >= 3
    assert all(name.startswith(("bad_", "good_")) for name in names)


def test_the_documents_are_up_to_date() -> None:
    folder = ROOT / "docs" / "rules"
    found = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    assert found == documents(), "run: python -m trueloop.doctor.rules.pages docs/rules"


def test_the_index_leads_to_every_page() -> None:
    written = documents()
    links = re.findall(r"\]\((.*?)\)", written["README.md"])
    assert links == [f"{entry.code}.md" for entry in ENTRIES]
    assert set(written) == {"README.md", *links}


def test_pages_of_rules_that_are_no_more_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in ("TL999.md", "notes.md"):
        (tmp_path / name).write_text("")
    write_documents(tmp_path / "new")
    write_documents(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*documents(), "notes.md", "new"}


def test_the_command_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "FOLDER" in capsys.readouterr().err
