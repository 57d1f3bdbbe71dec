"""`trueloop evaluate`: the scores of the best weights, on the run's own data and on other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trueloop.run import Run

Command = Callable[..., Any]


def test_own_data_gives_the_runs_own_scores(command: Command, spiral_run: Path) -> None:
    done = command("evaluate", spiral_run, "--json")
    assert done.status == 0
    assert done.err == ""
    found = json.loads(done.out)
    results = Run(spiral_run).results
    assert found["epoch"] == results["best_epoch"]
    assert found["scores"]["val"]["loss"] == pytest.approx(results["scores"]["val_loss"])
    assert found["scores"]["val"]["accuracy"] == results["scores"]["val_accuracy"]


def test_a_table_with_a_test_column(command: Command, line_run: Path) -> None:
    shown = command("evaluate", line_run).out.splitlines()
    assert "best weights" in shown[0]
    assert shown[1].split() == ["score", "validation", "test"]
    assert shown[2].split()[0] == "loss"
    scores = Run(line_run).results
    found = json.loads(command("evaluate", line_run, "--json").out)["scores"]
    assert found["test"] == pytest.approx(scores["test_scores"])


def test_other_data(command: Command, line_run: Path) -> None:
    Path("ten.txt").write_text("10")
    found = json.loads(command("evaluate", line_run, "--data", "ten.txt", "--json").out)
    assert set(found["scores"]) == {"data"}
    assert found["scores"]["data"]["mae"] > 0
    assert "this data" in command("evaluate", line_run, "--data", "ten.txt").out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["evaluate", "nowhere"], "no run at nowhere"),
        (["evaluate"], "RUN is missing: write trueloop evaluate RUN"),
        (["evaluate", "RUN", "--data", "x"], "cannot read other data"),
        (["evaluate", "RUN", "--device", "tpu"], "unknown device"),
        (["evaluate", "RUN", "--jsn"], "unknown option --jsn: did you mean '--json'?"),
    ],
)
def test_mistakes(command: Command, spiral_run: Path, words: list[str], expected: str) -> None:
    said = command(*[spiral_run if word == "RUN" else word for word in words])
    assert said.status == 2
    assert expected.lower() in said.complaint.lower()


def test_weights_that_do_not_fit_any_more(
    command: Command, line_run: Path, line_file: Path
) -> None:
    shutil.copytree(line_run, "moved")
    Path("other.py").write_text(
        line_file.read_text().replace("return nn.Linear(1, 1)", "return nn.Linear(1, 2)")
    )
    config = Path("moved/config.json")
    config.write_text(config.read_text().replace(str(line_file), str(Path("other.py").absolute())))
    said = command("evaluate", "moved")
    assert said.status == 2
    assert "do not fit the model" in said.complaint


def test_a_task_that_cannot_be_rebuilt(command: Command, spiral_run: Path) -> None:
    shutil.copytree(spiral_run, "changed")
    Path("changed/task.json").write_text("{}")
    said = command("evaluate", "changed")
    assert said.status == 2
    assert "cannot be rebuilt" in said.complaint


def test_a_damaged_checkpoint(command: Command, spiral_run: Path) -> None:
    shutil.copytree(spiral_run, "damaged")
    folder = Path("damaged/checkpoints")
    best = folder / json.loads((folder / "best.json").read_text())["name"] / "state.pt"
    best.write_bytes(best.read_bytes()[:-200])
    said = command("evaluate", "damaged")
    assert said.status == 2
    assert str(best) in said.complaint
