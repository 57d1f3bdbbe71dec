"""What `trueloop train` says about data and training, and where it is kept."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from documents import is_shown, shown
from trueloop.checkpoint import load_checkpoint
from trueloop.cli._doctor import _tell
from trueloop.run import Run

Command = Callable[..., Any]

TASK = '''
import torch
from torch import nn

import trueloop
from trueloop.tasks import Recipe, Splits


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4)]
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        return self.last(self.layers[0](x))


class Faulty(trueloop.Task):
    """A model with a layer that is not registered."""

    kind, classes = "multiclass", ["a", "b", "c"]
    recipe = Recipe(epochs=2, batch_size=16)

    def splits(self):
        x = torch.randn(96, 4, generator=torch.Generator().manual_seed(0))
        y = x[:, :3].argmax(1)
        return Splits(train=(x[:64], y[:64]), val=(x[64:], y[64:]))

    def model(self):
        return Net()
'''


@pytest.fixture
def table(tmp_path: Path) -> str:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((120, 2))
    y = (x[:, 0] + rng.standard_normal(120) > 0).astype(int)
    words = ["yes" if each else "no" for each in y]
    path = tmp_path / "people.csv"
    columns = {"a": x[:, 0], "b": x[:, 1], "unit": ["kg"] * 120, "alive": words, "survived": y}
    pl.DataFrame(columns).write_csv(path)
    return f"--data={path}"


def of(run: str) -> list[tuple[str, str]]:
    return [(each["code"], each["place"]) for each in Run(Path(run)).findings or []]


def test_a_leak_is_said_kept_and_shown(command: Command, table: str) -> None:
    done = command("train", "table", table, "--target=survived", "--run=new", "--epochs=1")
    assert done.status == 0
    leak, constant = done.err.splitlines()
    assert leak.startswith(
        "trueloop: error TL710, people.csv, column 'alive': Column 'alive' by itself"
    )
    assert leak.endswith("(trueloop explain TL710)")
    (text,) = shown("tests/cli/test_findings.py::test_a_leak_is_said_kept_and_shown")
    assert is_shown(text, leak, apart=True)
    assert constant.startswith("trueloop: advice TL714, people.csv, column 'unit': ")
    assert of("new") == [
        ("TL710", "people.csv, column 'alive'"),
        ("TL714", "people.csv, column 'unit'"),
    ]
    page = Path("new/report.html").read_text("utf-8")
    assert "<h2>Findings</h2>" in page
    assert page.index("trueloop explain TL710") < page.index("trueloop explain TL714")
    # Not to be missed by who looks at the score alone.
    assert "found   1 finding (TL710), which may make the result wrong" in done.out


def test_a_terminal_gets_findings_broken_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "trueloop: error TL710, people.csv: write --drop class,embark_town or look at the data"
    _tell(line)
    assert capsys.readouterr().err == line + "\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "44")
    _tell(line)
    lines = capsys.readouterr().err.splitlines()
    assert [text.strip() for text in lines] == [
        "trueloop: error TL710, people.csv: write",
        "--drop class,embark_town or look at the",
        "data",
    ]


def test_quiet_leaves_out_advice(command: Command, table: str) -> None:
    words = ["--target=survived", "--run=new", "--epochs=1", "--quiet"]
    done = command("train", "table", table, *words)
    (line,) = done.err.splitlines()
    assert "TL710" in line
    assert len(of("new")) == 2


def test_without_the_column_nothing_is_said(command: Command, table: str) -> None:
    words = ["--target=survived", "--drop=alive,unit", "--run=new", "--epochs=1", "--quiet"]
    done = command("train", "table", table, *words)
    assert done.err == ""
    assert of("new") == []
    page = Path("new/report.html").read_text("utf-8")
    assert "No findings." in page


def test_the_doctor_watches_a_task_of_ones_own(command: Command) -> None:
    Path("task.py").write_text(TASK)
    done = command("train", "task.py:Faulty", "--run=new", "--quiet")
    assert done.status == 0
    (line,) = done.err.splitlines()
    assert line.startswith("trueloop: error TL303, task.py:")
    number = 1 + TASK.splitlines().index("        self.layers = [nn.Linear(4, 4)]")
    assert of("new") == [("TL303", f"task.py:{number}")]


def test_nobody_looks_without_a_doctor(command: Command) -> None:
    Path("task.py").write_text(TASK)
    done = command("train", "task.py:Faulty", "--run=new", "--quiet", "--no-doctor")
    assert done.err == ""
    assert Run(Path("new")).findings is None
    assert "<h2>Findings" not in Path("new/report.html").read_text("utf-8")


def test_the_run_is_the_same_with_and_without(command: Command) -> None:
    Path("task.py").write_text(TASK)
    for name, words in (("with", []), ("without", ["--no-doctor"])):
        command("train", "task.py:Faulty", f"--run={name}", "--epochs=6", "--quiet", *words)
    one, other = (load_checkpoint(Run(Path(name)).checkpoints) for name in ("with", "without"))
    assert all(torch.equal(one["model"][key], other["model"][key]) for key in one["model"])
    logs = [
        [{k: v for k, v in line.items() if k not in ("time", "seconds")} for line in run.metrics()]
        for run in (Run(Path("with")), Run(Path("without")))
    ]
    assert logs[0] == logs[1]


def test_a_resumed_run_keeps_its_findings(command: Command) -> None:
    Path("task.py").write_text(TASK)
    words = ["--run=new", "--epochs=40", "--quiet", "--max-minutes=0.000001"]
    assert command("train", "task.py:Faulty", *words).status == 0
    found = of("new")
    done = command("resume", "new", "--max-minutes=5", "--quiet")
    assert done.status == 0
    assert Run(Path("new")).status == "finished"
    assert [code for code, _ in of("new")] == ["TL303"]
    assert set(found) <= set(of("new"))


def test_ready_made_tasks_give_no_alarm(command: Command) -> None:
    done = command("train", "spiral", "--epochs=4", "--run=new", "--quiet")
    assert (done.status, done.err) == (0, "")
    assert of("new") == []


def test_explain_knows_what_is_found_in_data(command: Command) -> None:
    said = command("explain", "TL714")
    assert said.out.startswith("# TL714 constant-column\n\nAdvice, found in the data of a run.")
