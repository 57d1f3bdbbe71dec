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
    INDEX,
    SILENCE,
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
    assert tuple(page.sections) == (*HEADINGS, SILENCE)
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


def test_the_index_is_up_to_date_and_leads_to_every_rule() -> None:
    text = (ROOT / "docs" / INDEX).read_text("utf-8")
    assert text == documents()[INDEX], "run: python -m trueloop.doctor.rules.pages docs"
    links = re.findall(r"\]\((.*?)\)", text)
    assert len(links) == len(ENTRIES)
    for link, entry in zip(links, ENTRIES, strict=True):
        assert (ROOT / "docs" / link).read_text("utf-8").startswith(f'"""{page_of(entry).summary}')


def test_the_folder_s_index_leads_to_every_page() -> None:
    written = documents()
    links = re.findall(r"\]\((.*?)\)", written["rules/README.md"])
    assert links == [f"{entry.code}.md" for entry in ENTRIES]
    assert set(written) == {INDEX, "rules/README.md", *(f"rules/{link}" for link in links)}


def test_every_page_says_how_to_silence_the_rule() -> None:
    for entry in ENTRIES:
        silence = page_of(entry).sections[SILENCE]
        assert ("No option" in silence) == (entry.seen == "D")
        assert entry.seen == "D" or f"ignore[{entry.code}]" in silence


def test_pages_of_rules_that_are_no_more_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    for name in ("TL999.md", "notes.md"):
        (tmp_path / "rules" / name).write_text("")
    write_documents(tmp_path)
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")}
    assert files == {*documents(), "rules/notes.md"}


def test_the_command_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "FOLDER" in capsys.readouterr().err
