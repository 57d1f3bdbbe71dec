"""`trueloop predict`: one row per sample, in a file that is whole or absent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
import torch

from trueloop.checkpoint import load_checkpoint
from trueloop.run import Run

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
        ("--data ten.txt --out out.csv --keep id", "--keep is for the columns of a table"),
        ("--dta ten.txt --out out.csv", "did you mean '--data'?"),
    ],
)
def test_mistakes(command: Command, line_run: Path, ten: Path, words: str, expected: str) -> None:
    Path("folder.csv").mkdir()
    said = command("predict", line_run, *words.split())
    assert said.status == 2
    assert expected in said.complaint
    assert not Path("out.csv").exists()


TAGS = '''
"""Which of three half planes a point is in."""

import torch
from torch import nn

import trueloop
from trueloop.tasks import PredictInput, Recipe, Splits


def points(count, seed):
    x = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return x, torch.stack([x[:, 0] > 0, x[:, 1] > 0.5, x.sum(1) > 1], 1).float()


class Tags(trueloop.Task):
    """Points with several labels."""

    kind = "multilabel"
    recipe = Recipe(epochs=5, batch_size=16, lr=0.3, monitor="val_loss")

    def splits(self):
        self.classes = ["right", "top", "far"]
        return Splits(train=points(64, 1), val=points(32, 2))

    def model(self):
        return nn.Linear(2, 3)

    def unseen(self, path):
        return PredictInput(inputs=points(40, 4)[0], names={"row": list(range(40))})
'''


def test_the_labels_of_a_sample_are_those_above_a_half(command: Command, tmp_path: Path) -> None:
    """Against the sigmoid in float64, from the weights in the checkpoint."""
    Path("tags.py").write_text(TAGS)
    assert command("train", "tags.py:Tags", "--quiet", "--run", "run").status == 0
    done = command("predict", "run", "--data", tmp_path, "--out", "out.parquet")
    assert (done.status, done.err) == (0, "")
    weights = load_checkpoint("run/checkpoints", which="best")["model"]
    x = torch.randn(40, 2, generator=torch.Generator().manual_seed(4)).double().numpy()
    logits = x @ weights["weight"].double().numpy().T + weights["bias"].double().numpy()
    likely = 1 / (1 + np.exp(-logits))
    frame = polars.read_parquet("out.parquet")
    names = ["right", "top", "far"]
    assert frame.columns == ["row", "prediction", *(f"p_{name}" for name in names), "error"]
    assert frame.select(f"p_{name}" for name in names).to_numpy() == pytest.approx(likely, abs=1e-6)
    chosen = [", ".join(name for name, above in zip(names, row, strict=True) if above)
              for row in likely > 0.5]  # fmt: skip
    assert frame["prediction"].to_list() == chosen
    assert {label.count(",") for label in chosen} >= {0, 1}
    assert "" in chosen
    said = command("predict", "run", "--data", tmp_path, "--out", "new.csv", "--threshold", "0.3")
    assert "--threshold 0.3 is for two classes, and this run is a multilabel" in said.complaint


@pytest.fixture
def houses() -> polars.DataFrame:
    """With an id that begins with zeros, and rows without a price, in a file; a run of them."""
    count = 40
    frame = polars.DataFrame({
        "id": [f"{k:03}" for k in range(count)],
        "rooms": [k % 5 for k in range(count)],
        "price": [None if k in (3, 8) else 100.5 * (k % 5) + k / 3 for k in range(count)],
    })  # fmt: skip
    frame.write_csv("houses.csv")
    return frame


def test_rows_without_a_target_are_counted_and_columns_are_kept(
    command: Command, houses: polars.DataFrame
) -> None:
    words = "train table --data houses.csv --target price --drop id --epochs 1 --no-doctor"
    left_out = "2 of 40 rows have no value in the target column 'price': they are skipped"
    done = command(*words.split(), "--run", "run")
    assert done.status == 0
    assert f"trueloop: {left_out}\n" in done.err
    assert Run("run").data["rows without a target, dropped"] == 2
    assert command(*words.split(), "--run", "again", "--quiet").err == ""
    assert left_out in command("evaluate", "run", "--data", "houses.csv").err

    base = ["predict", "run", "--data", "houses.csv"]
    assert command(*base, "--out", "all.csv", "--keep", "id, price,id").status == 0
    kept = polars.read_csv("all.csv", infer_schema=False)
    assert kept.columns == ["row", "id", "price", "prediction", "error"]
    written = polars.read_csv("houses.csv", infer_schema=False)
    assert kept.select("id", "price").equals(written.select("id", "price"))
    plain = Run("run").predict("houses.csv")
    assert kept["prediction"].cast(polars.Float32).to_list() == pytest.approx(plain["prediction"])
    in_memory = Run("run").predict(houses, keep="id")
    assert in_memory.columns == ["row", "id", "prediction", "error"]
    assert in_memory["id"].to_list() == houses["id"].to_list()

    own = ["row", "prediction", "error"]
    houses.rename({"id": "row"}).with_columns(prediction=1, error=2).write_csv("odd.csv")
    for name in (*own, "ro", "idd"):
        said = command("predict", "run", "--data", "odd.csv", "--out", "p.csv", "--keep", name)
        assert said.status == 2
        clash = f"--keep {name}: the predictions have a column {name!r} too: rename it"
        assert (clash if name in own else f"--keep: no column {name!r}: ") in said.complaint
        assert not Path("p.csv").exists()


def test_a_task_that_cannot_predict(command: Command, spiral_run: Path) -> None:
    said = command("predict", spiral_run, "--data", "x.csv", "--out", "out.csv")
    assert said.status == 2
    assert "cannot predict" in said.complaint
