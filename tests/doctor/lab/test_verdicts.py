"""From figures to verdicts, on claims made up for it; and what the pages say of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from trueloop.doctor.lab import claim_pages
from trueloop.doctor.lab.claims import (
    UNITS,
    VERDICTS,
    Claim,
    ClaimOutcome,
    Shown,
    Statement,
    all_claims,
    claims_named,
    docstring_of,
)
from trueloop.doctor.lab.verdicts import UNDECIDED, LabFindings, MeasuredClaim, is_true, spread
from trueloop.doctor.model.findings import Finding, Location
from trueloop.errors import ConfigError


def claim(folder: Path, **fields: Any) -> Claim:
    given = {
        "folder": folder,
        "number": "1a",
        "title": "A line",
        "claim": "It breaks `everything`.",
        "why": "Because.",
        "curve": "loss",
        "curve_says": "loss",
        "curve_x": "update",
        "curve_log": False,
        "timed": False,
        "figures": (Shown("score", "a score", "share"),),
        "tests": (
            Statement("worse", "it is worse", "wrong.score < right.score"),
            Statement("zero", "it is nothing", "wrong.score == 0"),
        ),
        "verdicts": (
            ClaimOutcome("true", ("worse", "zero"), "It does."),
            ClaimOutcome("true only if", ("worse",), "something is left."),
        ),
        "finds": (),
        "harmless": False,
        "silent": "It says nothing.",
    }
    return Claim(**{**given, **fields})


def measured(folder: Path, wrong: list[float], right: float = 0.9, **fields: Any) -> MeasuredClaim:
    return MeasuredClaim(
        claim(folder, **fields),
        list(range(len(wrong))),
        [{"score": right, "loss": [2.0, 1.0]} for _ in wrong],
        [{"score": each, "loss": [2.0, math.nan]} for each in wrong],
    )


@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [
        ([0.0, 0.0], "true"),
        ([0.0, 0.5], "true only if"),
        ([0.5, 0.5], "true only if"),
        ([0.0, 0.95], UNDECIDED),
        ([0.9, 0.9], UNDECIDED),
    ],
)
def test_first_verdict_whose_statements_hold_under_every_seed(
    tmp_path: Path, wrong: list[float], verdict: str
) -> None:
    assert measured(tmp_path, wrong).verdict == verdict


def test_a_statement_sees_figures_curves_and_few_names() -> None:
    right, wrong = {"x": 2.0, "loss": [3.0, 1.0]}, {"x": 4.0, "loss": [3.0, 5.0]}
    assert is_true("wrong.x == 2 * right.x and last(wrong.loss) > first(wrong.loss)", right, wrong)
    assert is_true("math.isclose(mean(right.loss), 2.0)", right, wrong)
    assert not is_true("all(v < 4 for v in wrong.loss)", right, wrong)
    with pytest.raises(AttributeError):
        is_true("right.y > 0", right, wrong)
    with pytest.raises(NameError):
        is_true("open('x')", right, wrong)


def test_spread() -> None:
    assert spread([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)
    assert spread([4.0, 1.0, 2.0, 3.0]) == (2.5, 1.0, 4.0)
    median, low, high = spread([1.0, math.nan, 2.0])
    assert (median, low) == (2.0, 1.0)
    assert math.isnan(high)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.934, "share", "93%"),
        (1536, "bytes", "1.5 KiB"),
        (3 * 2**20, "bytes", "3 MiB"),
        (17, "bytes", "17 B"),
        (0.00025, "seconds", "0.25 ms"),
        (0.0125, "seconds", "12 ms"),
        (2.0, "seconds", "2.0 s"),
        (1.9, "times", "1.900×"),
        (1200, "count", "1,200"),
        (0.12345, "", "0.1235"),
        (math.nan, "bytes", "NaN"),
    ],
)
def test_figures_with_their_units(value: float, unit: str, text: str) -> None:
    assert claim_pages.value_text(value, unit) == text


def test_diff_leaves_docstrings_out() -> None:
    wrong = '"""Wrong."""\nfor x in y:\n    step(x)\n    end()\n'
    right = '"""Right."""\nfor x in y:\n    step(y)\n    end()\n'
    assert claim_pages.diff(wrong, right) == [
        claim_pages.DiffLine(" ", "for x in y:"),
        claim_pages.DiffLine("-", "    step(x)"),
        claim_pages.DiffLine("+", "    step(y)"),
        claim_pages.DiffLine(" ", "    end()"),
    ]
    assert docstring_of(wrong) == ("Wrong.", "for x in y:\n    step(x)\n    end()")


def test_pages_of_a_claim_made_up(tmp_path: Path) -> None:
    folder, second = tmp_path / "a-line", tmp_path / "another"
    for each in (folder, second):
        each.mkdir()
        for side in ("right", "wrong"):
            (each / f"{side}.py").write_text(f'"""It is {side} <b>."""\nprint("{side}")\n')
    (folder / "convince.py").write_text("print(1 < 2)\n")
    one = measured(folder, [0.0, 0.0], curve_log=True)
    one.convinced = "True\n"
    finding = Finding("TL101", "x", "error", Location("wrong.py", 2), "Look at `it`.", "Mend it.")
    one.found = [LabFindings(finding, ("check", "watch"))]
    other = measured(second, [0.9, 0.9], number="1b")
    index = claim_pages.write(tmp_path / "out", [one, other])
    assert index == tmp_path / "out" / "index.html"
    text = (tmp_path / "out" / "a-line.html").read_text("utf-8")
    assert "It is right &lt;b&gt;." in text
    assert "Look at <code>it</code>" in text
    assert "found by trueloop check and watch" in text
    crib = (tmp_path / "out" / claim_pages.CRIB_SHEET).read_text("utf-8")
    assert "**true**" in crib
    assert "TL101" in crib
    assert UNDECIDED in index.read_text("utf-8")
    assert "https://" not in index.read_text("utf-8")
    assert "http://" not in text


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"--out .*file.* cannot be written"):
        claim_pages.prepare(tmp_path / "file")


def test_claims_by_name_and_number() -> None:
    claims = all_claims()
    assert [c.name for c in claims_named([claims[0].name])] == [claims[0].name]
    fourth = claims_named(["4"])
    assert {c.order[0] for c in fourth} == {4}
    assert len(fourth) >= 4
    assert claims_named([fourth[1].number]) == [fourth[1]]
    assert claims_named([]) == claims
    with pytest.raises(ConfigError, match="no claim is called 'clip-befor'"):
        claims_named(["clip-befor"])


def test_every_topic_of_the_crib_sheet_has_a_claim() -> None:
    assert {c.order[0] for c in all_claims()} == set(range(1, 21))
    numbers = [c.number for c in all_claims()]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("one", all_claims(), ids=lambda one: one.name)
def test_a_claim_is_whole(one: Claim) -> None:
    """What a page needs is there; and a measurement could have come out otherwise."""
    names = {each.name for each in one.tests}
    assert len(names) == len(one.tests)
    for outcome in one.verdicts:
        assert outcome.verdict in VERDICTS
        assert outcome.needs
        assert set(outcome.needs) <= names
    assert len({outcome.verdict for outcome in one.verdicts}) > 1
    assert all(each.unit in UNITS for each in one.figures)
    assert one.finds or one.silent or one.harmless
    assert not (one.harmless and one.finds)
    for text in (one.claim, one.why, one.title, *(v.says for v in one.verdicts)):
        assert text.count("`") % 2 == 0
    changed = [
        line
        for line in claim_pages.diff(
            one.program("wrong").read_text("utf-8"), one.program("right").read_text("utf-8")
        )
        if line.mark in "+-"
    ]
    assert changed
    sides = [sum(line.mark == mark for line in changed) for mark in "+-"]
    assert max(sides) <= 5, "a scaler takes four lines; most programs differ in one or two"
