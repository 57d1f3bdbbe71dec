"""`trueloop train --folds K` and `--repeats N`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trueloop.cli import _one_run
from trueloop.cli._session import read_data
from trueloop.cli.options import settings_from
from trueloop.run import Run

Command = Callable[..., Any]
QUICK = "--epochs 1 --batch-size 20 --quiet --no-doctor --width 8 --layers 1".split()


@pytest.fixture
def csv() -> str:
    """60 rows of a number that tells two classes of unequal sizes apart, in 12 groups."""
    rows = [f"{k},{k},{'ab'[k % 3 == 0]},g{k % 12}" for k in range(60)]
    Path("data.csv").write_text("\n".join(["row,x,y,g", *rows]))
    return "data.csv"


def rows_of(options: list[str]) -> list[set[int]]:
    """The rows, by their number, of each part."""
    settings = settings_from("table", ["--data", "data.csv", "--target", "y", *options])
    task = read_data(settings)[0]
    return [set(part.tolist()) for part in task.parts.values()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("split", ["random", "group:g"])
def test_each_row_validates_once(csv: str, split: str) -> None:
    parts = [rows_of(["--folds", "4", "--fold", str(k), "--split", split]) for k in range(1, 5)]
    test = parts[0][2]
    assert all(part[2] == test for part in parts)
    assert test == rows_of(["--split", split])[2]  # the same as without folds
    assert sorted(row for _, val, _ in parts for row in val) == sorted(set(range(60)) - test)
    for train, val, _ in parts:
        assert train == set(range(60)) - test - val
        if split == "random":
            shares = [sum(row % 3 == 0 for row in val), len(val)]
            assert abs(shares[0] - shares[1] / 3) <= 1
        else:
            assert not {row % 12 for row in train} & {row % 12 for row in val}


def test_a_table_on_disk_has_folds(csv: str) -> None:
    import polars as pl

    pl.read_csv("data.csv").write_parquet("data.parquet")
    seen, sizes = [], []
    for k in (1, 2, 3):
        options = f"--data data.parquet --target x --streaming always --folds 3 --fold {k}"
        _, splits = read_data(settings_from("table", options.split()))
        assert len(splits.train) + len(splits.val) + len(splits.test) == 60
        sizes.append(len(splits.test))
        seen += [float(target) for _, target in (splits.val[i] for i in range(len(splits.val)))]
    assert len(set(seen)) == len(seen) == 60 - sizes[0]
    assert len(set(sizes)) == 1


def test_one_command_trains_and_sums_up(command: Command, csv: str) -> None:
    given = ["train", "table", "--data", csv, "--target", "y", *QUICK]
    done = command(*given, "--folds", 3, "--run", "cv")
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    scores = [Run(f"cv/fold-{k}").results["scores"]["val_accuracy"] for k in (1, 2, 3)]
    summary = json.loads(Path("cv/folds.json").read_text())
    assert summary["mean"]["val_accuracy"] == pytest.approx(np.mean(scores))
    assert summary["std"]["val_accuracy"] == pytest.approx(np.std(scores, ddof=1))
    assert [one["run"] for one in summary["runs"]] == ["fold-1", "fold-2", "fold-3"]
    assert any(line.startswith("validation accuracy 0.") and "(3 folds)" in line for line in lines)
    assert any(line.startswith("test accuracy") and "±" in line for line in lines)
    page = Path("cv/report.html").read_text()
    assert "cv: 3 folds" in page
    assert "Validation accuracy" in page

    # The same run by hand.
    assert command(*given, "--folds", 3, "--fold", 2, "--run", "alone").status == 0
    alone, among = (
        [{n: v for n, v in line.items() if n not in ("time", "seconds")} for line in run.metrics()]
        for run in (Run("alone"), Run("cv/fold-2"))
    )
    assert alone == among

    # What is finished is kept, and what is missing is trained.
    before = Path("cv/fold-1/results.json").stat().st_mtime_ns
    shutil.rmtree("cv/fold-3")
    assert (
        "choose a different --run, or resume them"
        in command(*given, "--folds", 3, "--run", "cv").complaint
    )
    again = command("resume", "cv", "--quiet")
    assert again.status == 0
    assert Path("cv/fold-1/results.json").stat().st_mtime_ns == before
    assert json.loads(Path("cv/folds.json").read_text())["mean"] == summary["mean"]
    assert command("report", "cv").out == "cv/report.html\n"
    auto = [*given, "--run", "cv", "--resume", "auto", "--folds"]
    assert "--folds is 4" in command(*auto, 4).complaint
    assert command(*auto, 3).status == 0


def test_repeats_have_seeds_of_their_own(command: Command, line: str) -> None:
    done = command("train", line, "--repeats", 2, "--seed", 5, "--run", "r", "--quiet")
    assert done.status == 0, done.err
    assert [Run(f"r/repeat-{k}").config["seed"] for k in (1, 2)] == [5, 6]
    assert "(2 repeats)" in done.out


def test_an_interruption_says_how_to_go_on(
    command: Command, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trueloop.cli import _folds

    monkeypatch.setattr(_folds, "train_one", lambda settings: 130)
    stopped = command("train", line, "--repeats", 2, "--run", "r", "--quiet")
    assert stopped.status == 130
    assert "of all 2, resume with: trueloop resume r" in stopped.out
    monkeypatch.setattr(_folds, "train_one", _one_run.train_one)
    assert command("resume", "r", "--quiet").status == 0
    assert "(2 repeats)" in command("resume", "r").out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--folds 1", "--folds must be"),
        ("--fold 2", "names one fold of --folds"),
        ("--folds 3 --fold 4", "--fold must be"),
        ("--folds 3 --split time:x", "--repeats 5 instead"),
        ("--folds 3 --val-data data.csv", "leave out --val-data"),
        ("--folds 70", "cannot be dealt into 70 folds"),
    ],
)
def test_what_cannot_be(command: Command, csv: str, options: str, says: str) -> None:
    words = ["train", "table", "--data", csv, "--target", "y", "--run", "new", *QUICK]
    said = command(*words, *options.split())
    assert said.status == 2
    assert says in said.complaint
    assert not Path("new").exists()


def test_a_task_without_folds(command: Command, line: str) -> None:
    assert "self.divide(labels, 0.2)" in command("train", line, "--folds", 3).complaint
