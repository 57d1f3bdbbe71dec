"""`--track`, and what docs/trackers.md shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from readers import read_csv, read_tensorboard
from torch import nn

import trueloop
from trueloop.cli import main

DOCUMENT = Path(__file__).parents[2] / "docs" / "trackers.md"


@pytest.fixture(autouse=True)
def _workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_run_that_is_extended_goes_on_with_its_curves(tmp_path: Path) -> None:
    options = ["--batch-size", "500", "--schedule", "none", "--no-doctor", "--quiet"]
    track = ["--track", "csv,tensorboard", "--epochs", "1", "--run", "a"]
    assert main(["train", "spiral", *options, *track]) == 0
    assert main(["resume", "a", "--epochs", "2", "--quiet"]) == 0
    log = trueloop.Run("a").metrics()
    losses = {line["update"]: [line["loss"]] for line in log if line["kind"] == "update"}
    scores = {line["update"]: [line["val_loss"]] for line in log if line["kind"] == "eval"}
    assert len(scores) == 2
    for folder, read in (("csv", read_csv), ("tensorboard", read_tensorboard)):
        found = read(tmp_path / "a" / "trackers" / folder)
        own = {number: value for (name, number), value in found.items() if name == "updates/loss"}
        assert own == {number: pytest.approx(value) for number, value in losses.items()}
        own = {n: value for (name, n), value in found.items() if name == "evaluations/val_loss"}
        assert own == {number: pytest.approx(value) for number, value in scores.items()}


def test_what_cannot_be_tracked_is_one_line_and_no_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("trueloop.trackers.tracker.find_spec", lambda name: None)
    for name, said in (
        ("wandb", "pip install 'trueloop[wandb]'"),
        ("tensorbord", "did you mean 'tensorboard'?"),
    ):
        assert main(["train", "spiral", "--track", name, "--run", "a"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
    assert not list(tmp_path.iterdir())


def test_the_programs_of_the_document_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 2
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    data = torch.randn(16, 3), torch.zeros(16, 1)
    names: dict[str, Any] = {
        "step": trueloop.Step(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            trueloop.supervised(nn.MSELoss()),
        ),
        "train": trueloop.Feed(data, 8),
        "val": trueloop.Feed(data, 8),
    }
    exec(blocks[0], names)
    assert {name for name, _ in read_csv(Path("curves"))} >= {
        "updates/loss",
        "evaluations/val_loss",
    }
    assert len(read_tensorboard(Path("events"))) > 20
    exec(blocks[1], names)
    lines = Path("own-loop/updates.jsonl").read_text().splitlines()
    assert ['"update": 5' in lines[0], len(lines)] == [True, 2]
