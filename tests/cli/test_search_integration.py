"""`trueloop tune --search`: a small search with a trial that fails, killed in the midst and gone on
with; its page; what is wrong with its files in one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import warm_python

Command = Callable[..., Any]
SPACE = """\
lr: {low: 1.0e-3, high: 0.5, log: true}
poison: [false, true]
"""


@dataclass
class Searched:
    """A search of four trials that was killed in the midst, and what it said when it went on."""

    folder: Path
    words: list[str]
    said: dict[str, Any]
    before: list[Path]
    """The trials' files when it was killed."""


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory, line_file: Path) -> Searched:
    folder = tmp_path_factory.mktemp("search")
    (folder / "space.yaml").write_text(SPACE)
    words = ["tune", f"{line_file}:Line", "--search", "space.yaml", "--study", "study"]
    words += ["--trials", "4", "--format", "json", "--epochs", "2"]

    def start(*more: str) -> subprocess.Popen[str]:
        return warm_python.Popen(
            [sys.executable, "-m", "trueloop", *words, *more],
            cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    first = start()
    assert first.stderr is not None
    for line in first.stderr:
        if line.startswith("trial 1: lr"):
            break
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)
    before = sorted((folder / "study" / "trials").iterdir())
    again = start("--pruner", "hyperband")
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    return Searched(folder=folder, words=words, said=json.loads(out), before=before)


def test_a_killed_search_goes_on_with_the_trial_that_was_running(searched: Searched) -> None:
    trials = searched.said["trials"]
    assert [trial["number"] for trial in trials] == list(range(4))
    assert {"0000.yaml", "0001.yaml"} <= {path.name for path in searched.before}
    assert "running" not in {trial["state"] for trial in trials}


def test_a_trial_that_fails_is_recorded_with_its_reason(searched: Searched) -> None:
    for trial in searched.said["trials"]:
        if trial["params"]["poison"]:
            assert trial["state"] == "fail"
            assert "NaN" in trial["reason"] or "not finite" in trial["reason"]
        else:
            assert trial["state"] in ("complete", "pruned")


def test_the_best_trial_is_the_one_with_the_lowest_error(
    searched: Searched, command: Command
) -> None:
    done = [trial for trial in searched.said["trials"] if trial["state"] == "complete"]
    best = min(done, key=lambda trial: trial["value"])
    assert searched.said["best"] == best["number"]
    shown = command("train", "--config", searched.folder / "study/best.yaml", "--print-config")
    assert f"lr: {best['params']['lr']}" in shown.out


def test_the_page_shows_the_study(searched: Searched) -> None:
    page = (searched.folder / "study/report.html").read_text()
    assert "trueloop train --config" in page
    for chart in ("history", "slice-0", "slice-1"):
        assert f'data-figure="{chart}"' in page
    assert (searched.folder / "study/plotly.min.js").exists()


def test_only_the_best_trial_keeps_its_weights(searched: Searched) -> None:
    kept = [path.parent.name for path in searched.folder.glob("study/trials/*/checkpoints")]
    assert kept == [f"{searched.said['best']:04d}"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--epochs", "3"], "is a study with a different options (epochs: 2, not 3)"),
        (["--search", "other.yaml"], "is a study with a different space"),
        (["--study", "."], "exists and is not a study: choose a different --study"),
        (["--search", "wrong.yaml"], "wrong.yaml: lr: 'high' cannot be: --lr must be a number"),
        (["--search", "low.yaml"], "low.yaml: lr: -1 cannot be: --lr must be above 0"),
        (["--search", "nowhere.yaml"], "no configuration file"),
        (["--search", "empty.yaml"], "empty.yaml is empty: write"),
        (["--lr", "1"], "lr is searched, and --lr gives it one value"),
        (["--trials", "0"], "--trials must be 1 to"),
        (["--pruner", "medain"], "unknown pruner 'medain': did you mean 'median'?"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_lost(
    searched: Searched, command: Command, monkeypatch: pytest.MonkeyPatch,
    words: list[str], complaint: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(searched.folder)
    Path("other.yaml").write_text("lr: [0.1, 0.2]")
    Path("wrong.yaml").write_text("lr: [0.1, high]")
    Path("low.yaml").write_text("lr: {low: -1, high: 1}")
    Path("empty.yaml").write_text("")
    before = (searched.folder / "study/study.db").read_bytes()
    said = command(*searched.words, *words)
    assert said.status == 2
    assert complaint in said.complaint
    assert (searched.folder / "study/study.db").read_bytes() == before


def test_options_of_a_search_need_one(command: Command) -> None:
    said = command("tune", "spiral", "--study", "here")
    assert said.status == 2
    assert "--study is for a search: write --search FILE with it" in said.complaint
