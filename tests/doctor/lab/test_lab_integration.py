"""The lab's programs, run: what they show, and what the doctor says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trials import trials
from trueloop.cli import main
from trueloop.doctor.lab import running
from trueloop.doctor.lab.claims import Claim, all_claims
from trueloop.doctor.lab.verdicts import is_true

SEED = running.SEEDS[0]


@pytest.fixture(scope="module")
def context() -> Any:
    return running.context()


def run(context: Any, path: Path) -> tuple[dict[str, Any], list[Any]]:
    """What a program printed, and what the doctor finds in it."""
    ran = running.run(context, path, SEED, watched=True)
    assert ran.failed == "", ran.stderr
    return json.loads(ran.stdout.splitlines()[-1]), [each for each in ran.found if each.is_alarm]


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.name)
def test_a_claim_under_one_seed(claim: Claim, context: Any) -> None:
    right, fine = run(context, claim.program("right"))
    assert fine == []
    wrong, faults = run(context, claim.program("wrong"))
    assert sorted({each.finding.code for each in faults}) == sorted(claim.finds)
    assert set(right) == set(wrong)
    for figure in claim.figures:
        assert isinstance(right[figure.name], (int, float))
    assert isinstance(right[claim.curve], list)
    held = {each.name: is_true(each.test, right, wrong) for each in claim.tests}
    if not claim.timed:  # other tests run beside
        assert any(all(held[name] for name in each.needs) for each in claim.verdicts), held


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twice the same figures; pages, the crib sheet and the data lie in the folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "SEEDS", running.SEEDS[: trials(2, 5)])
    results = []
    for out in ("a", "b"):
        assert main(["lab", "--only", "11c", "5", "--out", out]) == 0
        assert "2 claims in" in capsys.readouterr().out
        results.append(json.loads((tmp_path / out / "lab.json").read_text()))
    assert results[0] == results[1]
    made = {path.name for path in (tmp_path / "a").iterdir()}
    assert {"index.html", "crib-sheet.md", "lab.json", "plotly.min.js"} <= made
    assert len([name for name in made if name.endswith(".html")]) == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--only", "zero-grad"], "no claim is called 'zero-grad'"),
        (["--out", "file"], "cannot be written"),
        (["--outt", "x"], "did you mean '--out'"),
    ],
)
def test_mistakes_cost_a_line(
    words: list[str], says: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    assert main(["lab", *words]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert says in said
    assert (tmp_path / "file").read_text() == "mine"


def test_a_program_that_fails(tmp_path: Path, context: Any) -> None:
    program = tmp_path / "wrong.py"
    program.write_text("raise ValueError('no\\nway')\n")
    ran = running.run(context, program, 0)
    assert ran.failed == "ValueError: no way"
    program.write_text("import os\nos._exit(3)\n")
    assert running.run(context, program, 0).failed


def test_the_readers_own_configuration_says_nothing_of_the_lab(
    tmp_path: Path, context: Any
) -> None:
    """The package may lie in a virtual environment inside of a project that ignores rules."""
    (tmp_path / "pyproject.toml").write_text('[tool.trueloop]\nignore = ["ALL"]\n')
    wrong = next(c for c in all_claims() if c.name == "step-before-backward").program("wrong")
    program = tmp_path / "wrong.py"
    program.write_text(wrong.read_text("utf-8"))
    found = running.run(context, program, SEED, watched=True).found
    assert [(each.finding.code, each.by) for each in found if each.is_alarm] == [
        ("TL103", ("check", "watch"))
    ]
