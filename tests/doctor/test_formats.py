"""What is told to people, programs and code hosts."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trueloop.doctor.model.findings import Finding, Location, Related
from trueloop.doctor.report.github import as_github
from trueloop.doctor.report.json_object import as_json
from trueloop.doctor.report.sarif import as_sarif
from trueloop.doctor.report.terminal import COLOURS, Paint, as_text
from trueloop.doctor.static.checking import CheckResult
from trueloop.doctor.static.inputs.discovery import FileProblem, Unread

TRAIN = """\
for batch in loader:
    optimizer.zero_grad()
    loss = criterion(model(batch))
    loss.backward()
    optimizer.zero_grad()

    log(loss)
    optimizer.step()
"""


@pytest.fixture(autouse=True)
def _workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def finding(path: str = "train.py", *related: tuple[Location, str], **other: Any) -> Finding:
    made = Finding(
        "TL101",
        "zero-grad-after-backward",
        "error",
        Location(os.path.abspath(path), 5, 5, 5, 26),
        "`optimizer.zero_grad()` erases the gradients before the step: 100% of them.",
        "Move it to the start of the loop.",
        tuple(Related(place._replace(path=os.path.abspath(place.path)), s) for place, s in related),
    )
    return replace(made, **other)


def outcome(
    *findings: Finding,
    problems: list[FileProblem] | None = None,
    unread: list[Unread] | None = None,
) -> CheckResult:
    Path("train.py").write_text(TRAIN, "utf-8")
    return CheckResult(list(findings), problems or [], 3, unread=unread or [])


def half_read(path: str = "train.py") -> Unread:
    return Unread(os.path.abspath(path), 7, "train", "not read to its end: …, 100% sure")


def test_the_text_shows_what_a_good_compiler_shows() -> None:
    step = (Location("train.py", 8, 5, 8, 21), "the step that finds them cleared")
    assert (
        as_text(outcome(finding("train.py", step)))
        == """\
train.py:5:5  TL101 error  zero-grad-after-backward
  `optimizer.zero_grad()` erases the gradients before the step: 100% of them.
    |
  5 |     optimizer.zero_grad()
    |     ^^^^^^^^^^^^^^^^^^^^^
    ...
  8 |     optimizer.step()
    |     ---------------- the step that finds them cleared
  fix: Move it to the start of the loop.
  trueloop explain TL101

3 files checked: 1 error"""
    )


def test_other_lines_stand_in_their_order_and_below_their_files() -> None:
    Path("other.py").write_text("def f():\n    step()\n")
    told = as_text(
        outcome(
            finding(
                "train.py",
                (Location("other.py", 2, 5, 2, 11), "steps here"),
                (Location("train.py", 4, 5, 4, 20), "made here"),
                (Location("train.py", 5, 15, 5, 24), "cleared here"),
            )
        )
    )
    assert told.split("\n")[2:11] == [
        "    |",
        "  4 |     loss.backward()",
        "    |     --------------- made here",
        "  5 |     optimizer.zero_grad()",
        "    |     ^^^^^^^^^^^^^^^^^^^^^",
        "    |               --------- cleared here",
        "    --> other.py:2:5",
        "  2 |     step()",
        "    |     ------ steps here",
    ]


@pytest.mark.parametrize(
    ("line", "start", "end", "underline"),
    [
        ("\tx = f(1)", 6, 10, "\t    ^^^^"),
        ("日本 = f(1)", 6, 10, "       ^^^^"),
        ("x = '日本'", 5, 9, "    ^^^^^^"),
        ("f(", 1, 0, "^^"),
        ("", 1, 2, "^"),
        ("x", 40, 60, " ^"),
    ],
    ids=["tab", "wide before", "wide within", "several lines", "empty", "beyond"],
)
def test_the_underline_stands_below_what_it_means(
    line: str, start: int, end: int, underline: str
) -> None:
    Path("a.py").write_text(line, "utf-8")
    place = Location(os.path.abspath("a.py"), 1, start, 1 if end else 3, end or 2)
    told = as_text(outcome(finding(place=place))).split("\n")
    assert told[3:5] == [f"  1 | {line}".rstrip(), f"    | {underline}"]


def test_a_line_without_end_is_cut_around_its_place() -> None:
    Path("a.py").write_text("x" * 5000 + "HERE" + "y" * 5000)
    place = Location(os.path.abspath("a.py"), 1, 5001, 1, 5005)
    code, underline = as_text(outcome(finding(place=place))).split("\n")[3:5]
    assert len(code) < 120
    assert code[underline.index("^") : underline.rindex("^") + 1] == "HERE"


def test_what_steers_a_terminal_is_not_let_through() -> None:
    Path("a.py").write_text("x = '\x1b[2J\x07'\n")
    place = Location(os.path.abspath("a.py"), 1, 1, 1, 4)
    told = as_text(outcome(finding(place=place, message="a \x1b[31m name")))
    assert "\x1b" not in told
    assert "\x07" not in told


def test_a_file_that_has_changed_since_is_told_without_its_lines() -> None:
    assert "zero-grad" in as_text(outcome(finding(place=Location(os.path.abspath("train.py"), 99))))
    assert "zero-grad" in as_text(outcome(finding("gone.py")))


def test_colours_colour_and_change_nothing_else() -> None:
    made = outcome(finding("train.py", (Location("train.py", 8, 5, 8, 21), "there")))
    told = as_text(made, Paint(COLOURS))
    assert "\x1b[1;31mTL101 error\x1b[0m" in told
    assert re.sub(r"\x1b\[[\d;]*m", "", told) == as_text(made)


def test_the_summary_counts() -> None:
    found = [
        finding(),
        finding(severity="warning"),
        finding(severity="warning"),
        finding(severity="advice"),
    ]
    problems = [FileProblem("/a.py", 1, "why"), FileProblem("/a.py", 2, "why")]
    assert as_text(outcome(*found, problems=problems)).split("\n")[-1] == (
        "3 files checked: 1 error, 2 warnings, 1 advice; 1 could not be checked in full"
    )
    assert as_text(outcome()) == "3 files checked: nothing found"
    assert as_text(outcome(unread=[half_read()])) == (
        "3 files checked: nothing found; 1 not read to the end"
    )


def test_json_is_the_documented_object() -> None:
    problem = FileProblem(os.path.abspath("b.py"), 0, "is odd")
    told = json.loads(as_json(outcome(finding(), finding(fix=None), problems=[problem])))
    assert set(told) == {"findings", "files", "problems", "unread"}
    assert told["unread"] == []
    assert told["findings"][0] == {
        "code": "TL101",
        "name": "zero-grad-after-backward",
        "severity": "error",
        "path": "train.py",
        "line": 5,
        "column": 5,
        "message": "`optimizer.zero_grad()` erases the gradients before the step: 100% of them.",
        "fix": "Move it to the start of the loop.",
        "count": 1,
    }
    assert told["findings"][1]["fix"] is None
    assert told["files"] == 3
    assert told["problems"] == [{"path": "b.py", "line": None, "message": "is odd"}]
    assert len(json.loads(as_json(outcome(), [finding()]))["fixed"]) == 1


def test_what_was_not_read_is_named_in_all_formats() -> None:
    about = outcome(unread=[half_read()])
    assert json.loads(as_json(about))["unread"] == [
        {
            "path": "train.py",
            "line": 7,
            "function": "train",
            "message": "not read to its end: …, 100% sure",
        }
    ]
    assert as_github(about) == (
        "::notice file=train.py,title=trueloop check,line=7::not read to its end: …, 100%25 sure"
    )
    (run,) = json.loads(as_sarif(about))["runs"]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["level"] == "warning"
    assert notification["message"]["text"] == "not read to its end: …, 100% sure"
    (location,) = notification["locations"]
    assert location["physicalLocation"]["region"] == {"startLine": 7}
    notebook()
    (of_cell,) = json.loads(as_json(outcome(unread=[half_read("nb.ipynb")._replace(line=4)])))[
        "unread"
    ]
    assert of_cell["line"] == 2


def notebook() -> Finding:
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["x = 1\n", "y = 2"]},
        {"cell_type": "code", "source": ["z = 3\n", "optimizer.step()"]},
    ]
    Path("nb.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}))
    path = os.path.abspath("nb.ipynb")
    return finding(
        place=Location(path, 4, 1, 4, 17), related=(Related(Location(path, 2, 1, 2, 6), "there"),)
    )


def test_of_a_notebook_the_cell_is_told() -> None:
    told = as_text(outcome(notebook()))
    assert told.split("\n")[0].startswith("nb.ipynb: cell 3, line 2, column 1  TL101")
    assert told.split("\n")[2:8] == [
        "    |", "  2 | y = 2", "    | ----- there", "    --> cell 3", "  2 | optimizer.step()",
        "    | ^^^^^^^^^^^^^^^^",
    ]  # fmt: skip
    (found,) = json.loads(as_json(outcome(notebook())))["findings"]
    assert (found["path"], found["cell"], found["line"]) == ("nb.ipynb", 3, 2)
    annotation = as_github(outcome(notebook()))
    assert "line=" not in annotation.split("::")[1]
    assert "Cell 3, line 2: " in annotation
    result = json.loads(as_sarif(outcome(notebook())))["runs"][0]["results"][0]
    assert "region" not in result["locations"][0]["physicalLocation"]
    assert result["message"]["text"].startswith("Cell 3, line 2: ")


def test_annotations_of_github() -> None:
    odd = finding("a,b:c.py", severity="advice")
    problem = FileProblem(os.path.abspath("b.py"), 3, "is odd")
    lines = as_github(outcome(finding(), odd, problems=[problem])).split("\n")
    assert lines[0] == (
        "::error file=train.py,title=TL101 zero-grad-after-backward,line=5,endLine=5,col=5,"
        "endColumn=26::`optimizer.zero_grad()` erases the gradients before the step: 100%25 of "
        "them.%0Afix: Move it to the start of the loop."
    )
    assert lines[1].startswith("::notice file=a%2Cb%3Ac.py,")
    assert lines[2] == "::error file=b.py,title=trueloop check,line=3::is odd"
    assert as_github(outcome()) == ""


def test_sarif_has_what_the_standard_requires() -> None:
    step = (Location("sub dir/é.py", 8, 5, 8, 21), "the step")
    outside = finding(place=Location("/elsewhere/x.py", 3))
    problem = FileProblem(os.path.abspath("b.py"), 3, "is odd")
    log = json.loads(as_sarif(outcome(finding("train.py", step), outside, problems=[problem])))
    assert (log["version"], log["$schema"][-16:]) == ("2.1.0", "sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "trueloop"
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids) > 50
    for rule in driver["rules"]:
        assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
        assert "## Wrong" in rule["help"]["markdown"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
        assert re.fullmatch("[A-Z][A-Za-z0-9]+", rule["name"])
    result, other = run["results"]
    assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "TL101"
    assert result["level"] == "error"
    assert "erases the gradients" in result["message"]["text"]
    assert result["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "train.py"},
                "region": {"startLine": 5, "startColumn": 5, "endLine": 5, "endColumn": 26},
            }
        }
    ]
    (related,) = result["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "sub%20dir/%C3%A9.py"
    assert related["message"]["text"] == "the step"
    where = other["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"] == "file:///elsewhere/x.py"
    assert where["region"] == {"startLine": 3, "startColumn": 1}
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is True
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"] == "is odd"


def test_a_fingerprint_outlives_the_lines_above_it() -> None:
    def prints(*lines: int) -> list[str]:
        places = [Location(os.path.abspath("train.py"), line, 5, line, 26) for line in lines]
        made = CheckResult([finding(place=place) for place in places], [], 1)
        results = json.loads(as_sarif(made))["runs"][0]["results"]
        return [each["partialFingerprints"]["primaryLocationLineHash"] for each in results]

    outcome()
    before = prints(5, 2)
    assert len(set(before)) == 2  # lines that are alike are counted
    assert prints(5, 8)[0] != prints(5, 8)[1]
    Path("train.py").write_text("import torch\n\n" + TRAIN)
    assert prints(7, 4) == before


def test_in_a_terminal_no_line_is_longer_than_it() -> None:
    long = (
        f"        loss = criterion({'x' * 30}(model(torch.randn(8, 4))), {'y' * 40})  # and so on"
    )
    Path("long.py").write_text(long + "\n")
    path = os.path.abspath("long.py")
    here, there = Location(path, 1, 16, 1, len(long)), Location(path, 1, 60, 1, 70)
    made = outcome(
        Finding(
            "TL101", "zero-grad", "error", here, "word " * 40,
            related=(Related(there, "a label that is too long to stand behind it"),),
        )
    )  # fmt: skip
    told = as_text(made, Paint(terminal=60)).split("\n")
    assert max(map(len, told)) <= 60
    assert any(line.endswith("| " + " " * (54 - 43) + "a label that is too long to stand behind it")
               for line in told)  # fmt: skip
