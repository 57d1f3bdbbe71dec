"""What an evaluation leaves in the run: scores, machine, code and data; and what it notes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trueloop.run import Run, write_report
from trueloop.run.data_digest import data_facts

Command = Callable[..., Any]


def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words], check=True)


@pytest.fixture
def own(line_run: Path) -> Path:
    """A copy of the line's run."""
    shutil.copytree(line_run, "own")
    shutil.rmtree("own/evaluations", ignore_errors=True)
    return Path("own")


def records(run: Path) -> list[Path]:
    return sorted((run / "evaluations").iterdir())


def test_an_evaluation_is_recorded_with_data_and_code(command: Command, own: Path) -> None:
    git("init", "-q")
    Path("net.py").write_text("width = 1\n")
    Path("ten.txt").write_text("10")
    shown = command("evaluate", own, "--data", "ten.txt", "--json")
    assert (shown.status, shown.err) == (0, "")
    (folder,) = records(own)
    found = json.loads((folder / "evaluation.json").read_text())
    assert found["verb"] == "evaluate"
    assert found["scores"] == json.loads(shown.out)["scores"]
    assert found["data"] == data_facts(Path("ten.txt"))
    assert json.loads((folder / "environment.json").read_text())["git"]["untracked"] == ["net.py"]
    assert "+width = 1" in (folder / "changes.patch").read_text()

    assert command("predict", own, "--data", "ten.txt", "--out", "p.csv").status == 0
    found = json.loads((records(own)[-1] / "evaluation.json").read_text())
    assert (found["verb"], found["rows"], found["out"]) == (
        "predict",
        10,
        data_facts(Path("p.csv")),
    )

    page = re.sub(r"<[^>]+>", " ", write_report(Run(own)).read_text())
    assert f"{folder.name}.data" in page
    assert str(Path("p.csv").resolve()) in page


def test_where_the_run_cannot_be_written(command: Command, own: Path) -> None:
    """The scores are printed all the same."""
    (own / "evaluations").symlink_to("disk that is not there")
    shown = command("evaluate", own)
    assert shown.status == 0
    assert "best weights" in shown.out
    assert shown.complaint.startswith("trueloop: warning: this is not recorded in the run: cannot")


def rewrite(run: Path, **changes: Any) -> None:
    path = run / "environment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_what_differs_from_the_training_is_one_line(command: Command, own: Path) -> None:
    Path("ten.txt").write_text("10")
    Path("two.txt").write_text("2")
    facts = data_facts(Path("ten.txt"))
    assert facts is not None
    rewrite(own, data=facts)
    said = command("evaluate", own, "--data", "ten.txt").complaint
    assert "ten.txt has the data that the run was trained on" in said
    assert command("evaluate", own, "--data", "two.txt").err == ""
    Path("ten.txt").write_text("11")
    rewrite(own, data=facts, torch="1.0", trueloop="0.0")
    said = command("evaluate", own, "--data", "ten.txt").complaint
    assert re.fullmatch(
        r"trueloop: note: since the training, \S+/ten.txt is not the same; trueloop is \S+, and "
        r"was 0.0; torch is \S+, and was 1.0",
        said,
    )


def test_code_that_differs_from_the_trained_one(
    command: Command, line_file: Path, tmp_path: Path
) -> None:
    git("init", "-q")
    shutil.copy(line_file, "task.py")
    Path("net.py").write_text("width = 1\n")
    git("add", ".")
    git("commit", "-q", "-m", "x")
    run = tmp_path / "run"
    assert command("train", "task.py:Line", "--quiet", "--epochs", "1", "--run", run).status == 0
    Path(".gitignore").write_text("run\n")
    assert command("evaluate", run).err == ""
    Path("net.py").write_text("width = 2\n")
    assert "the code has other uncommitted changes" in command("evaluate", run).complaint
    git("commit", "-q", "-am", "y")
    said = command("evaluate", run).complaint
    assert re.search(r"the code is at commit \w{10}, and was at commit \w{10}$", said)


def test_a_training_keeps_the_digest_of_its_data_and_a_resume_its_changes(
    command: Command, line_file: Path
) -> None:
    git("init", "-q")
    shutil.copy(line_file, "task.py")
    git("add", ".")
    git("commit", "-q", "-m", "x")
    Path("points.txt").write_text("64")
    words = ["task.py:Line", "--data", "points.txt", "--schedule", "none", "--quiet"]
    assert command("train", *words, "--epochs", "1", "--run", "run").status == 0
    run = Run("run")
    assert run.environment["data"] == data_facts(Path("points.txt"))
    with Path("task.py").open("a") as file:
        file.write("# changed\n")
    assert command("resume", "run", "--epochs", "2", "--quiet").status == 0
    (part,) = run.environment["resumed"]
    assert (part["update"], part["patch"]) == (4, "changes.patch")
    assert "+# changed" in Path("run/changes.patch").read_text()
