"""`--split`, `--val-data` and `--test-data` of a run: kept, and used again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trueloop.checkpoint import load_checkpoint

Command = Callable[..., Any]


@pytest.mark.parametrize("words", [["--split=time:day"], ["--val-data=v.csv", "--test-share=0.2"]])
def test_a_run_is_scored_and_resumed_on_the_rows_that_it_was_given(
    command: Command, words: list[str]
) -> None:
    lines = [f"{k % 7},{2000 + k * 11 % 80},{k % 2}" for k in range(80)]
    Path("t.csv").write_text("\n".join(["x,day,y", *lines]))
    Path("v.csv").write_text("\n".join(["x,day,y", *lines[:9]]))
    train = ("train", "table", "--data=t.csv", "--target=y", "--width=4", "--quiet", *words)
    done = command(*train, "--epochs=2", "--run=run")
    assert done.status == 0
    config = json.loads(Path("run/config.json").read_text("utf-8"))
    assert (config["split"] == "time:day") is (words[0] == "--split=time:day")
    os.chdir(Path("run/checkpoints"))  # files are found again from anywhere
    scores = json.loads(command("evaluate", "../../run", "--json").out)["scores"]
    kept = load_checkpoint(Path(), which="best")["scores"]
    assert scores["val"]["loss"] == pytest.approx(kept["val_loss"], rel=1e-6)
    os.chdir("../..")
    shorter = (*train, "--epochs=2", "--run=again", "--schedule=none", "--no-doctor")
    assert command(*shorter, "--max-minutes=1e-9").status == 0
    assert command("resume", "again", "--max-minutes=9").status == 0
    whole = command(*shorter[:-3], "--schedule=none", "--no-doctor", "--run=whole")
    assert whole.status == 0
    one, other = (load_checkpoint(Path(f"{run}/checkpoints")) for run in ("again", "whole"))
    assert all((one["model"][name] == other["model"][name]).all() for name in one["model"])
    Path("t.csv").write_text("\n".join(["x,day,y", *lines, "1,2100,0"]))
    command(*shorter[:-3], "--schedule=none", "--run=cut", "--max-minutes=1e-9")
    Path("t.csv").write_text("\n".join(["x,day,y", *lines]))
    said = command("resume", "cut", "--max-minutes=9")
    assert said.status == 2
    assert "t.csv has changed since the run began" in said.complaint
