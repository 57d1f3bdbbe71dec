"""`trueloop report`: one run's page again, several on one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]


def test_one_run_is_written_again(command: Command, spiral_run: Path) -> None:
    shutil.copytree(spiral_run, "copy")
    Path("copy/report.html").unlink()
    done = command("report", "copy")
    assert done.status == 0
    assert done.out == "copy/report.html\n"
    assert "<html" in Path("copy/report.html").read_text()


def test_several_are_compared(command: Command, spiral_run: Path, line_run: Path) -> None:
    done = command("report", spiral_run, line_run)
    assert done.status == 0
    assert done.out == "compare.html\n"
    assert "spiral" in Path("compare.html").read_text()
    said = command("report", spiral_run, line_run, "--out", "pages/two.html")
    assert (said.status, Path("pages").exists()) == (2, False)
    assert "/pages: create it, or choose a different --out" in said.complaint
    Path("pages").mkdir()
    assert command("report", spiral_run, line_run, "--out", "pages/two.html").status == 0
    assert Path("pages/two.html").is_file()


def test_one_file(command: Command, spiral_run: Path) -> None:
    done = command("report", spiral_run, "--one-file", "--out", "mail.html")
    assert Path(done.out.strip()).name == "mail.html"
    assert [path.name for path in Path().iterdir()] == ["mail.html"]
    Path("folder").mkdir()
    assert "is a folder" in command("report", spiral_run, "--one-file", "--out", "folder").complaint


def test_mistakes(command: Command, spiral_run: Path) -> None:
    assert "no run at nowhere" in command("report", "nowhere").complaint
    said = command("report", spiral_run, "--out", "x.html")
    assert said.status == 2
    assert "leave out --out" in said.complaint


def test_without_a_run_the_latest_is_taken_and_named(command: Command, spiral_run: Path) -> None:
    for name, day in (("new", 3), ("old", 1), ("folds/fold-1", 2)):
        place = Path("runs", name)
        shutil.copytree(spiral_run, place)
        started = json.loads((place / "environment.json").read_text())
        started["started"] = f"2026-01-0{day}T10:00:00+00:00"
        (place / "environment.json").write_text(json.dumps(started))
    done = command("report")
    assert (done.status, done.out) == (0, "runs/new/report.html\n")
    assert done.err == "trueloop: runs/new is the latest run\n"
    assert command("follow", "--once").err == done.err
    said = command("resume")
    assert said.status == 2
    assert "runs/new has finished: there is nothing to resume" in said.err.splitlines()[-1]
    assert said.err.startswith(done.err)
    shutil.copytree("runs/new", "runs/twin")
    refused = command("report").complaint
    assert "runs/new and runs/twin began in the same second: write trueloop report RUN" in refused
    for name in ("new", "twin"):
        shutil.rmtree(Path("runs", name))
    Path("runs/folds/folds.json").touch()
    assert command("follow", "--once").err == "trueloop: runs/folds/fold-1 is the latest run\n"
    assert command("resume").err.startswith("trueloop: runs/folds is the latest run\n")
