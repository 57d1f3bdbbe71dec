"""Runs whose length and evaluations are in updates or tokens: their report, and longer runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trueloop.run import Run
from trueloop.run.charts import Curves, loss, scores
from trueloop.run.log_reader import LogReader

Command = Callable[..., Any]
TEXT = ("--layers", 1, "--width", 16, "--heads", 2, "--context", 16, "--batch-size", 4)


def places(run: Run) -> list[int]:
    """Updates after which the run was evaluated."""
    return [line["update"] for line in run.metrics() if line["kind"] == "eval"]


def log_of(run: Run) -> list[tuple[Any, ...]]:
    """What its log has of each update and evaluation."""
    names = ("kind", "update", "loss", "grad_norm", "val_loss", "val_mae")
    return [tuple(line.get(name) for name in names) for line in run.metrics()]


def test_evaluations_by_updates_stand_in_the_report_and_go_on_in_a_longer_run(
    command: Command, line: str
) -> None:
    words = ("train", line, "--quiet", "--schedule", "none", "--eval-every", "3 updates")
    assert command(*words, "--updates", 10, "--run", "r").status == 0
    run = Run("r")
    assert places(run) == [3, 6, 9, 10]
    chart = loss(Curves(LogReader.of(run.metrics())))
    assert chart is not None
    assert chart["layout"]["xaxis"]["title"]["text"] == "update"
    (validation,) = [trace for trace in chart["data"] if trace["name"] == "validation"]
    assert validation["x"] == [3, 6, 9, 10]
    page = Path("r/report.html").read_text("utf-8")
    assert json.dumps({"text": "update"}, separators=(",", ":")) in page.replace(" ", "")

    refused = command("resume", "r", "--epochs", 9)
    assert refused.status == 2
    assert "the run is as long as its updates, 10: write --updates N" in refused.complaint
    assert command("resume", "r", "--updates", 14, "--quiet").status == 0
    assert places(run) == [3, 6, 9, 10, 12, 14]
    assert run.results["updates"] == 14
    assert command(*words, "--updates", 14, "--run", "straight").status == 0
    assert log_of(Run("straight")) == [each for each in log_of(run) if each[:2] != ("eval", 10)]


def test_a_longer_run_in_tokens(command: Command) -> None:
    Path("text.txt").write_text("to be or not to be, that is the question\n" * 60)
    words = ("train", "text", "--data", "text.txt", *TEXT, "--schedule", "none", "--quiet")
    end = ("--eval-every", "128 tokens", "--sample-tokens", 0, "--run", "r")
    assert command(*words, "--tokens", 320, *end).status == 0
    run = Run("r")
    assert (run.results["updates"], run.results["tokens"]) == (5, 320)
    assert places(run) == [2, 4, 5]
    assert command("resume", "r", "--tokens", 512, "--quiet").status == 0
    assert (run.results["updates"], run.results["tokens"]) == (8, 512)
    assert places(run) == [2, 4, 5, 6, 8]
    page = Path("r/report.html").read_text("utf-8")
    assert "Tokens per second" in page
    titles = [title for title, _, _ in scores(Curves(LogReader.of(run.metrics())))]
    assert titles == ["perplexity", "bits per byte"]
