"""`trueloop predict`: one row per sample, in a file that is whole or absent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pytest
import torch

from trueloop.checkpoint import load_checkpoint

Command = Callable[..., Any]


@pytest.fixture
def ten() -> Path:
    Path("ten.txt").write_text("10")
    return Path("ten.txt")


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("out.csv", polars.read_csv),
        ("out.parquet", polars.read_parquet),
        ("out.json", polars.read_json),
        ("OUT.CSV", polars.read_csv),
    ],
)
def test_predictions_are_the_models(
    command: Command, line_run: Path, ten: Path, name: str, read: Callable[[str], polars.DataFrame]
) -> None:
    done = command("predict", line_run, "--data", ten, "--out", name)
    assert done.status == 0
    assert done.out.startswith("10 predictions in ")
    frame = read(name)
    assert frame.columns == ["row", "prediction", "error"]
    assert frame["error"].null_count() == 10
    assert frame["row"].to_list() == list(range(1, 11))
    weights = load_checkpoint(line_run / "checkpoints", which="best")["model"]
    x = torch.rand(10, 1, generator=torch.Generator().manual_seed(4))
    expected = (x @ weights["weight"].T + weights["bias"]).flatten().tolist()
    assert frame["prediction"].to_list() == pytest.approx(expected, rel=1e-6)


def test_nothing_is_overwritten_unless_forced(command: Command, line_run: Path, ten: Path) -> None:
    Path("out.csv").write_text("mine")
    said = command("predict", line_run, "--data", ten, "--out", "out.csv")
    assert said.status == 2
    assert "--force" in said.complaint
    assert Path("out.csv").read_text() == "mine"
    assert command("predict", line_run, "--data", ten, "--out", "out.csv", "--force").status == 0
    assert polars.read_csv("out.csv").height == 10


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--data ten.txt --out out.xlsx", "--out out.xlsx has no ending that can be written"),
        ("--data ten.txt --out out.cvs", "did you mean '.csv'?"),
        ("--data ten.txt --out out", "known: .csv"),
        ("--data ten.txt", "write --out FILE.csv"),
        ("--out out.csv", "write --data PATH"),
        ("--data ten.txt --out folder.csv", "is a directory"),
        ("--data ten.txt --out new/out.csv", "/new: create it"),
        ("--dta ten.txt --out out.csv", "did you mean '--data'?"),
    ],
)
def test_mistakes(command: Command, line_run: Path, ten: Path, words: str, expected: str) -> None:
    Path("folder.csv").mkdir()
    said = command("predict", line_run, *words.split())
    assert said.status == 2
    assert expected in said.complaint
    assert not Path("out.csv").exists()


def test_a_task_that_cannot_predict(command: Command, spiral_run: Path) -> None:
    said = command("predict", spiral_run, "--data", "x.csv", "--out", "out.csv")
    assert said.status == 2
    assert "cannot predict" in said.complaint
