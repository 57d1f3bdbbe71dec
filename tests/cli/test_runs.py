"""`trueloop runs`: every run in a folder, sorted as asked."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from trueloop.cli.runs import COLUMNS, columns_that_fit
from trueloop.run import Run

Command = Callable[..., Any]


def make_run(
    name: str, *, started: str, score: float, monitor: str = "val_accuracy", seconds: float = 1.0
) -> None:
    run = Run.create(Path("runs", name), config={"task": name}, environment={"started": started})
    run.write_results(
        {
            "status": "finished",
            "task": name,
            "monitor": monitor,
            "scores": {monitor: score},
            "epochs": 3,
            "updates": 1234,
            "seconds": seconds,
        }
    )


@pytest.fixture
def _three_runs() -> None:
    make_run("b", started="2025-01-01T10:00:00+00:00", score=0.5, seconds=3)
    make_run("a", started="2025-01-03T10:00:00+00:00", score=0.9, seconds=2)
    make_run("c", started="2025-01-02T10:00:00+00:00", score=0.7, seconds=1)


def listed(shown: Any) -> list[str]:
    """The names in the first column."""
    assert shown.status == 0
    return [line.split()[0] for line in shown.out.splitlines()[1:]]


def test_no_runs_yet(command: Command) -> None:
    shown = command("runs")
    assert shown.status == 0
    assert shown.out == "no runs in runs yet: start one with trueloop train spiral\n"
    Path("empty").mkdir()
    assert "no runs in empty yet" in command("runs", "empty").out


@pytest.mark.usefixtures("_three_runs")
def test_the_newest_comes_first(command: Command) -> None:
    shown = command("runs")
    assert shown.out.splitlines()[0].split() == list(COLUMNS)
    assert listed(shown) == ["a", "c", "b"]
    assert "val accuracy 0.9000" in shown.out
    assert "1,234" in shown.out


@pytest.mark.usefixtures("_three_runs")
@pytest.mark.parametrize(
    ("column", "order"),
    [("run", "abc"), ("score", "acb"), ("time", "cab"), ("started", "acb"), ("task", "abc")],
)
def test_sorting(command: Command, column: str, order: str) -> None:
    assert listed(command("runs", "--sort", column)) == list(order)


@pytest.mark.usefixtures("_three_runs")
def test_a_narrow_terminal_loses_columns_not_digits(command: Command) -> None:
    full = max(len(line) for line in command("runs").out.splitlines())
    for width, lost in (
        (full, set()),
        (full - 1, {"updates"}),
        (10, {"updates", "epochs", "task"}),
    ):
        console = Console(width=width, force_terminal=True, file=io.StringIO())
        fitting = columns_that_fit(console, Run.find("runs"), Path("runs"))
        assert set(COLUMNS) - set(fitting) == lost


@pytest.mark.usefixtures("_three_runs")
def test_scores_that_should_fall_are_best_when_small(command: Command) -> None:
    make_run("d", started="2025-01-04T10:00:00+00:00", score=0.3, monitor="val_loss")
    make_run("e", started="2025-01-04T10:00:00+00:00", score=0.2, monitor="val_loss")
    assert listed(command("runs", "--sort", "score")) == ["a", "c", "b", "e", "d"]


@pytest.mark.usefixtures("_three_runs")
def test_unfinished_and_damaged_runs_are_listed(command: Command) -> None:
    Run.create("runs/young", config={"task": "spiral"}, environment={"started": "2025-02-01"})
    Path("runs/b/results.json").write_text("{")
    for column in COLUMNS:
        assert set(listed(command("runs", "--sort", column))) >= {"a", "c", "young", "b"}
    shown = command("runs").out
    assert "unfinished" in shown
    assert "unreadable" in shown
    assert "corrupt" in shown


def test_a_run_that_a_process_holds_is_running(command: Command) -> None:
    make_run("a", started="2025-01-03T10:00:00+00:00", score=0.9)  # and resumed since
    with Run("runs/a").claimed():
        assert " running " in command("runs").out
    assert " finished " in command("runs").out


def test_mistakes(command: Command) -> None:
    said = command("runs", "--sort", "scores")
    assert said.status == 2
    assert said.complaint == "trueloop: error: unknown column 'scores': did you mean 'score'?"
    assert "no folder nowhere" in command("runs", "nowhere").complaint
