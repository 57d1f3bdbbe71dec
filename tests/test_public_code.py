"""benchmarks/public_code.py on two made-up repositories."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import public_code
import public_removals
from public_clones import check_out, git_folder, listed
from public_commits import known_bugs

LOOP = """\
import torch

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(3):
    model.train()
    for x, y in torch.load("train.pt"):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in torch.load("val.pt"):
            print(torch.nn.functional.mse_loss(model(x), y).item())
"""
FAULTY = LOOP.replace("        optimizer.zero_grad()\n", "")
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": "a title"},
        {"cell_type": "code", "source": FAULTY.splitlines(keepends=True)},
    ]
}


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *who, *words]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clones of two repositories, the lists, and a checkout."""
    root = tmp_path_factory.mktemp("world")
    clone = root / "clones" / "someone+first"
    clone.mkdir(parents=True)
    git(clone, "init", "-q")
    (clone / "train.py").write_text(FAULTY)
    (clone / "notes.txt").write_text("no Python")
    git(clone, "add", ".")
    git(clone, "commit", "-q", "-m", "before")
    before = git(clone, "rev-parse", "HEAD")
    (clone / "train.py").write_text(LOOP)
    (clone / "course.ipynb").write_text(json.dumps(NOTEBOOK))
    git(clone, "add", ".")
    git(clone, "commit", "-q", "-m", "Clear the gradients")
    after = git(clone, "rev-parse", "HEAD")
    other = root / "clones" / "someone+second"
    other.mkdir()
    git(other, "init", "-q")
    (other / "main.py").write_text(FAULTY)
    git(other, "add", ".")
    git(other, "commit", "-q", "-m", "all")
    lists = root / "lists"
    lists.mkdir()
    write(lists / "repositories.json", "repositories", [
        {"repository": "someone/first", "commit": after, "kind": "vision", "part": "looked at"},
        {"repository": "someone/second", "commit": git(other, "rev-parse", "HEAD"),
         "kind": "graphs", "part": "held out", "folders": ["main.py"]},
    ])  # fmt: skip
    for name in ("judged.json", "held_out.json"):
        write(lists / name, "findings", [])
    known = {"repository": "someone/first", "before": before, "after": after, "path": "train.py",
             "part": "looked at"}  # fmt: skip
    write(lists / "buggy_commits.json", "commits", [
        {**known, "wrong": "gradients never cleared", "code": "TL102"},
        {**known, "wrong": "something else", "code": "TL401"},
        {**known, "wrong": "left unsaid", "code": "", "part": "held out"},
    ])  # fmt: skip
    statement = {"repository": "someone/first", "script": "train.py"}
    write(lists / "removals.json", "removals", [
        {**statement, "line": 8, "text": "optimizer.zero_grad()", "kind": "zero_grad"},
        {**statement, "line": 12, "text": "model.eval()", "kind": "eval"},
        {**statement, "line": 13, "text": "with torch.no_grad():", "kind": "no_grad"},
        {**statement, "line": 15, "text": "print(", "kind": "item", "without": ".item()"},
    ])  # fmt: skip
    assert run(root, "checkout", root / "clones", root / "public") == 0
    return root


def write(path: Path, name: str, entries: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps({"about": "made up", name: entries}))


def run(root: Path, *words: object) -> int:
    return public_code.main(["--lists", str(root / "lists"), *map(str, words)])


def test_the_listed_commits_are_checked_out(world: Path) -> None:
    files = sorted(path.name for path in (world / "public").rglob("*") if path.is_file())
    assert files == ["course.ipynb", "main.py", "train.py"]
    assert (world / "public" / "someone+first" / "train.py").read_text() == LOOP
    git_of = git_folder(world / "clones", "someone/first")
    assert git_of is not None
    [first, _] = listed(world / "lists")
    assert check_out(git_of, first.commit, world / "part", ["course.ipynb"]) == 1


def test_findings_are_judged_and_counted(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    public, sheet = world / "public", world / "unjudged.txt"
    assert run(world, "check", public, "--unjudged", sheet) == 0
    assert "2 unjudged findings" in capsys.readouterr().out
    text = sheet.read_text()
    assert ">   10         optimizer.step()" in text
    assert "#### someone/first course.ipynb:cell 2, line 10 TL102 error: `optimizer`" in text

    filled = text.replace('"verdict": ""', '"verdict": "true"', 1)
    filled = filled.replace('"verdict": ""', '"verdict": "false"', 1)
    sheet.write_text(filled.replace('"reason": ""', '"reason": "as it says"'))
    assert run(world, "accept", sheet) == 0
    assert "judged.json: 1 accepted, 1 in all\nheld_out.json: 1 accepted" in capsys.readouterr().out

    assert run(world, "check", public, "--unjudged", sheet) == 0
    out = capsys.readouterr().out
    assert "0 unjudged findings" in out
    assert re.search(r"looked at: errors and warnings\n.*\nTL102 +1 +0 +0 +0 +100.0% +100.0%", out)
    assert re.search(r"held out: errors and warnings\n.*\nTL102 +0 +0 +1 +0 +0.0% +0.0%", out)
    assert "judged true and not found today: 0" in out
    assert "the line is a different one: 0" in out
    assert "files not read to their end: 0" in out
    assert "training scripts read to their end: 1 of 1" in out
    assert re.search(r"3 files, 43 lines in [\d.]+ s: \d+ lines/s", out)


def test_what_is_gone_is_named(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = {"repository": "someone/first", "path": "train.py", "cell": 0, "line": 1}
    judged = {**place, "code": "TL999", "text": "another line", "reason": "made up"}
    lists = world / "other"
    lists.mkdir()
    for name in ("repositories.json", "held_out.json", "removals.json"):
        (lists / name).write_text((world / "lists" / name).read_text())
    write(lists / "judged.json", "findings", [{**judged, "verdict": "true"}])
    words = ["--lists", str(lists), "check", str(world / "public"), "--part", "looked at"]
    assert public_code.main(words) == 0
    out = capsys.readouterr().out
    assert "not found today: 1\n  someone/first train.py:1 TL999" in out
    assert "the line is a different one: 1\n  someone/first train.py:1 TL999" in out
    assert "held out" not in out
    write(lists / "judged.json", "findings", [{**judged, "verdict": "perhaps"}])
    with pytest.raises(SystemExit, match=r"train.py:1 TL999: give a verdict, one of true, noise"):
        public_code.main(words)


def test_known_bugs_before_and_after(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(world, "commits", world / "clones") == 0
    out = capsys.readouterr().out
    assert "train.py: gradients never cleared: found\n" in out
    assert "train.py: something else: missed TL401\n" in out
    assert "left unsaid" not in out
    assert re.search(r"\nlooked at +2 +1 +2 +2 +1\nheld out +1 +1 +1 +0 +0\n", out)


def test_statements_are_removed_in_turn(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(world, "removals", world / "public") == 0
    out = capsys.readouterr().out
    assert "train.py:8 optimizer.zero_grad(): TL102\n" in out
    assert "train.py:12 model.eval(): TL202\n" in out
    assert "train.py:13 with torch.no_grad():: TL203\n" in out
    assert "train.py:15 print(: missed\n" in out
    assert re.search(r"\ntotal +4 +3 +75.0%\n", out)
    assert (world / "public" / "someone+first" / "train.py").read_text() == LOOP


@pytest.mark.parametrize(
    ("line", "statement", "without", "left"),
    [
        (2, "b(1,", "", "a()\npass; c()\n\nwith d:\n    e()\n"),
        (4, "with d:", "", "a()\nb(1,\n  2); c()\nif True:\n    e()\n"),
        (5, "e()", "()", "a()\nb(1,\n  2); c()\nwith d:\n    e\n"),
    ],
)
def test_other_lines_keep_their_numbers(line: int, statement: str, without: str, left: str) -> None:
    text = "a()\nb(1,\n  2); c()\nwith d:\n    e()\n"
    removal = public_removals.Removal("r", "s.py", line, statement, "kind", without=without)
    assert public_removals.removed(text, removal) == left


def test_a_removal_names_its_line() -> None:
    removal = public_removals.Removal("r", "s.py", 1, "b()", "kind")
    with pytest.raises(ValueError, match=r"s.py:1 is not 'b\(\)'"):
        public_removals.removed("a()\n", removal)


def test_the_committed_lists_are_sound() -> None:
    parts = {each.repository: each.part for each in listed()}
    assert len(parts) == len(listed()) >= 30
    assert sum(part == "held out" for part in parts.values()) >= 30
    for part, name in public_code.LIST_OF.items():
        judged = public_code.judged_in(public_code.LISTS / name)
        assert {parts[place.repository] for place in judged} <= {part}
    assert all(each.before != each.after for each in known_bugs())
    assert all(each.part == parts.get(each.repository, each.part) for each in known_bugs())
    removals = public_removals.removals()
    assert {parts[each.repository] for each in removals} <= {"looked at"}
    assert len(set(removals)) == len(removals)
