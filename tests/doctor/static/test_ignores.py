"""Comments that hold findings back, and what is said of those that hold back none."""

from __future__ import annotations

import pytest

from trueloop.doctor.config import Config
from trueloop.doctor.model.findings import Finding, Location
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.static.inputs.documents import Document, Program
from trueloop.doctor.static.inputs.ignores import complaints, hold_back, ignores_in


def finding(code: str, line: int) -> Finding:
    entry = BY_CODE[code]
    return Finding(code, entry.name, entry.severity, Location("a.py", line), "…")


def judged(
    text: str, *found: tuple[str, int], config: Config | None = None
) -> tuple[list[tuple[str, int]], list[str]]:
    """(what is still told, what is said about the comments)"""
    ignores = ignores_in(Document("a.py", text, [Program(text)]))
    left = hold_back([finding(*each) for each in found], ignores)
    said = complaints(ignores, config or Config("/"), "/a.py")
    return (
        [(each.code, each.place.line) for each in left],
        [f"{each.place.line}:{each.place.column} {each.message}" for each in said],
    )


@pytest.mark.parametrize(
    "comment",
    [
        "# trueloop: ignore[TL101]",
        "# trueloop: ignore",
        "#trueloop:ignore[ tl101 , TL102]",
        "# trueloop: ignore[zero-grad-after-backward]",
        "# trueloop: ignore[TL1]",
        "# noqa: E501  # trueloop: ignore[TL101]",
        "# trueloop: ignore[TL101] - the fault is meant",
    ],
)
def test_a_comment_speaks_of_its_line(comment: str) -> None:
    left, _ = judged(f"a = 1\nb = 2  {comment}\nc = 3\n", ("TL101", 1), ("TL101", 2), ("TL101", 3))
    assert left == [("TL101", 1), ("TL101", 3)]


@pytest.mark.parametrize(
    "comment",
    ["# trueloop: ignore[TL102]", "# trueloop: ignored", "# trueloop: ignore[TL101",
     "# ignore[TL101]", "# trueloop: ignore[]", "# trueloop: ignore[TL999]",
     "'# trueloop: ignore[TL101]'"],
)  # fmt: skip
def test_other_comments_do_not(comment: str) -> None:
    left, _ = judged(f"b = 2,  {comment}\n", ("TL101", 1))
    assert left == [("TL101", 1)]


def test_a_statement_over_several_lines_is_one() -> None:
    text = (
        "f(\n    a,  # trueloop: ignore[TL101]\n    b,\n)\nfor x in y:  # trueloop: ignore\n    z\n"
    )
    left, said = judged(text, ("TL101", 1), ("TL101", 3), ("TL102", 5), ("TL101", 6))
    assert left == [("TL101", 6)]
    assert not said


def test_alone_on_its_line_it_speaks_of_the_statement_below() -> None:
    text = "if a:\n    # why\n    # trueloop: ignore[TL101]\n\n    f(\n      1)\n    g()\n"
    left, said = judged(text, ("TL101", 5), ("TL101", 7))
    assert left == [("TL101", 7)]
    assert not said


def test_a_whole_file() -> None:
    found = (("TL101", 1), ("TL102", 9))
    assert judged("x = 1\n# trueloop: ignore-file[TL101]\n", *found) == ([("TL102", 9)], [])
    assert judged("# trueloop: ignore-file\n", *found) == ([], [])


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# trueloop: ignore[TL101]", "no TL101 was found here"),
        ("# trueloop: ignore[TL102, TL101]", "no TL101 was found here"),
        ("# trueloop: ignore[TL2]", "no TL2 was found here"),
        ("# trueloop: ignore-file[TL101]", "no TL101 was found in this file"),
        ("# trueloop: ignore[TL10l]", "unknown rule 'TL10l': did you mean TL101"),
        ("# trueloop: ignore[]", "its brackets name no rule"),
        ("# trueloop: ignore[TL102", "its brackets name no rule"),
    ],
)
def test_what_holds_back_nothing_is_said(comment: str, said: str) -> None:
    _, (complaint,) = judged(f"x = 1  {comment}\n", ("TL102", 1))
    assert complaint.startswith("1:8 ")
    assert said in complaint


def test_without_codes_it_must_hold_back_something() -> None:
    _, (complaint,) = judged("x = 1  # trueloop: ignore\n")
    assert "nothing was found here" in complaint


def test_rules_that_are_not_asked_for_go_unjudged() -> None:
    text = "x = 1  # trueloop: ignore[TL101]\ny = 1  # trueloop: ignore\n"
    assert judged(text, config=Config("/", ignore=frozenset({"TL101"}))) == ([], [])


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # trueloop: ignore[TL101, TL001]\n",
        "# trueloop: ignore[TL101, TL001]\nx = 1\n",
        "# trueloop: ignore-file[TL001]\nx = 1  # trueloop: ignore[TL101]\n",
    ],
)
def test_the_complaint_itself_can_be_silenced(text: str) -> None:
    assert judged(text) == ([], [])


def test_a_text_that_ends_in_the_middle_counts_as_far_as_it_goes() -> None:
    assert judged("x = 1  # trueloop: ignore\ny = (\n", ("TL101", 1))[0] == []
