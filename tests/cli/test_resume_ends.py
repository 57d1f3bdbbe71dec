"""Ends that were not clean: lost files, kills near the end, more epochs, options of a resume."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trueloop.checkpoint import LOCK, load_checkpoint
from trueloop.cli import _training, main
from trueloop.run import Run

Command = Callable[..., Any]


class Killed(BaseException):
    """As a kill: nothing catches it."""


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory, line_file: Path) -> Path:
    """A run of the line that ran out of time after its first update."""
    path = tmp_path_factory.mktemp("half") / "r"
    words = ["train", f"{line_file}:Line", "--quiet", "--schedule", "none", "--run", str(path)]
    assert main([*words, "--max-minutes", "1e-9"]) == 0
    return path


@pytest.fixture
def stopped(half: Path) -> Run:
    shutil.copytree(half, "r")
    return Run("r")


@pytest.fixture
def over(line_run: Path) -> Run:
    """A finished run, to be damaged."""
    shutil.copytree(line_run, "r")
    return Run("r")


def text_of(run: Run) -> str:
    return (run.path / "report.html").read_text()


# -- A log that was lost


@pytest.mark.parametrize("how", ["deleted", "emptied", "zeroed"])
def test_a_lost_log_is_said_once_and_noted(command: Command, line: str, how: str) -> None:
    words = ["train", line, "--quiet", "--schedule", "none", "--run", "r"]
    assert command(*words, "--epochs", "2").status == 0
    run = Run("r")
    log = run.path / "metrics.jsonl"
    before = run.metrics()
    if how == "deleted":
        log.unlink()
    else:
        log.write_bytes(b"" if how == "emptied" else bytes(log.stat().st_size))
    said = command("resume", "r", "--epochs", "3", "--quiet")
    assert said.status == 0
    warnings = [line for line in said.err.splitlines() if "warning" in line]
    assert len(warnings) == 1
    assert "has lost updates 1 to 8 of metrics.jsonl" in warnings[0]
    lines = run.metrics()
    (note,) = [line for line in lines if line["kind"] == "note"]
    assert (note["from"], note["to"]) == (1, 8)
    assert "The lines of updates 1 to 8 were lost" in text_of(run)
    evals = [line for line in lines if line["kind"] == "eval"]
    assert [line["epoch"] for line in evals] == [1, 2, 3]
    for old, new in zip([line for line in before if line["kind"] == "eval"], evals, strict=False):
        assert old["val_mae"] == new["val_mae"], "the checkpoint holds the evaluations"
    assert run.results["epochs"] == 3
    updates = [line["update"] for line in lines if line["kind"] == "update"]
    assert updates == [9, 10, 11, 12]
    times = [line["time"] for line in lines]
    assert times == sorted(times)
    again = command("resume", "r", "--epochs", "4", "--quiet")
    assert "has lost" not in again.err, "it was said"
    assert len([line for line in run.metrics() if line["kind"] == "note"]) == 1


def test_lines_missing_in_the_middle(command: Command, line: str) -> None:
    words = ["train", line, "--quiet", "--schedule", "none", "--run", "r", "--epochs", "2"]
    assert command(*words).status == 0
    log = Path("r/metrics.jsonl")
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:1] + lines[3:]))
    said = command("resume", "r", "--epochs", "3", "--quiet")
    assert "has lost updates 2 to 3 of metrics.jsonl" in said.err
    kinds = [(line["kind"], line["update"]) for line in Run("r").metrics()[:4]]
    assert kinds == [("update", 1), ("note", 3), ("update", 4), ("eval", 4)]


@pytest.mark.parametrize("name", ["data.json", "environment.json"])
def test_a_file_that_went_missing_is_said_and_noted(
    command: Command, stopped: Run, name: str
) -> None:
    (stopped.path / name).unlink()
    said = command("resume", "r", "--quiet", "--max-minutes", "9")
    assert said.status == 0
    assert f"r has lost {name}: it continues" in said.err
    assert json.loads((stopped.path / name).read_text())
    (note,) = [line for line in stopped.metrics() if line["kind"] == "note"]
    assert note["message"].startswith(f"{name} was missing when the run was resumed")
    assert note["message"] in text_of(stopped)


def test_what_is_whole_is_not_spoken_of(command: Command, stopped: Run) -> None:
    said = command("resume", "r", "--quiet", "--max-minutes", "9")
    assert (said.status, said.err) == (0, "")
    assert all(line["kind"] != "note" for line in stopped.metrics())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"name": "../../x", "epoch": 1}', None])
def test_a_damaged_mark_of_the_best_is_made_up_for(
    command: Command, over: Run, content: bytes | None
) -> None:
    before = command("evaluate", "r", "--json").out
    best = over.checkpoints / "best.json"
    best.unlink() if content is None else best.write_bytes(content)
    said = command("evaluate", "r", "--json")
    assert said.status == 0
    assert said.out == before
    assert ("best.json is damaged; by the manifests" in said.err) == (content is not None)


# -- Killed near the end


def kill_at(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Let the process end there, as far as its files are concerned."""
    owner, name = (Run, "write_results") if "results" in where else (_training, "write_report")
    real = getattr(owner, name)

    def killed(*args: Any) -> Any:
        if where.startswith("after"):
            real(*args)
        if where.startswith("inside"):
            Path(f"r/.{where.split()[1]}.123.tmp").write_text("half of")
        raise Killed

    monkeypatch.setattr(owner, name, killed)


PLACES = [
    "before results", "inside results.json", "after results",
    "before report", "inside report.html", "after report",
]  # fmt: skip


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("again", ["resume", "auto"])
def test_killed_between_the_last_update_and_the_end(
    command: Command, line: str, monkeypatch: pytest.MonkeyPatch, where: str, again: str
) -> None:
    words = ["train", line, "--quiet", "--epochs", "1", "--run", "r"]
    with monkeypatch.context() as patch:
        kill_at(patch, where)
        with pytest.raises(Killed):
            main(words)
    Path("r", LOCK).touch()  # a killed process leaves it
    said = command("resume", "r") if again == "resume" else command(*words, "--resume", "auto")
    if where == "after report" and again == "resume":
        assert said.status == 2
        assert "there is nothing to resume" in said.complaint
    else:
        assert said.status == 0, said.err
        assert not Path("r", LOCK).exists()
    run = Run("r")
    assert run.status == "finished"
    assert run.results["scores"]
    assert "</html>" in text_of(run)
    assert (run.path / "plotly.min.js").is_file()
    assert not run.litter()
    assert (
        command(*words, "--resume", "auto").out == "r has finished: there is nothing left to do\n"
    )


def test_the_script_beside_the_report_is_written_too(command: Command, over: Run) -> None:
    (over.path / "plotly.min.js").unlink()
    assert command("resume", "r").status == 0
    assert (over.path / "plotly.min.js").is_file()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_complete_run_is_only_read(command: Command, over: Run) -> None:
    over.path.chmod(0o500)
    assert "has finished" in command("resume", "r").complaint


# -- More epochs, and other options


@pytest.mark.parametrize("schedule", ["none", "plateau"])
def test_more_epochs_are_the_run_that_had_them_from_the_start(
    command: Command, line: str, schedule: str
) -> None:
    words = ["train", line, "--quiet", "--schedule", schedule]
    assert command(*words, "--run", "whole", "--epochs", "5").status == 0
    assert command(*words, "--run", "parts", "--epochs", "2").status == 0
    assert command("resume", "parts", "--epochs", "5", "--quiet").status == 0
    whole, parts = Run("whole"), Run("parts")
    assert parts.config["epochs"] == 5
    assert parts.results["epochs"] == 5
    for name in ("scores", "best_epoch", "updates"):
        assert parts.results[name] == whole.results[name]
    a, b = (load_checkpoint(run.checkpoints)["model"] for run in (whole, parts))
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_a_run_is_prolonged_from_before_its_decay_alone(command: Command, line: str) -> None:
    words = ["train", line, "--quiet", "--schedule", "warmup_stable_decay", "--warmup", "1 epoch"]
    words += ["--outliers", "clip", "--outlier-factor", "2", "--decay-shape", "1-sqrt", "--decay"]
    assert command(*words, "2 epochs", "--run", "whole", "--epochs", "8").status == 0
    # As if stopped before its decay.
    assert command(*words, "0 epochs", "--run", "r", "--epochs", "3").status == 0
    Run("r").write_config({**Run("r").config, "decay": "2 epochs"})
    assert command("resume", "r", "--epochs", "8", "--quiet").status == 0
    a, b = (load_checkpoint(Run(run).checkpoints) for run in ("whole", "r"))
    assert all(torch.equal(a["model"][name], b["model"][name]) for name in a["model"])
    assert a["step"]["schedule"] == b["step"]["schedule"]
    assert torch.equal(
        a["step"]["outliers"]["norms"].nan_to_num(), b["step"]["outliers"]["norms"].nan_to_num()
    )
    said = command("resume", "r", "--epochs", "12")
    assert said.status == 2
    assert "inside the decay of its schedule" in said.complaint


@pytest.mark.parametrize(
    "schedule", ["cosine", "warmup_cosine", "one_cycle", "warm_restarts", "step_decay"]
)
def test_a_schedule_as_long_as_the_run_takes_no_more_epochs(
    command: Command, line: str, schedule: str
) -> None:
    words = ["train", line, "--quiet", "--schedule", schedule, "--run", "r", "--epochs", "4"]
    assert command(*words).status == 0
    run = Run("r")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    said = command("resume", "r", "--epochs", "12")
    assert said.status == 2
    assert f"the schedule {schedule} is as long as the run" in said.complaint
    assert before == {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


def test_a_killed_prolongation_goes_on(
    command: Command, over: Run, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    shutil.rmtree("r")
    words = ["train", line, "--quiet", "--schedule", "none", "--run", "r", "--epochs", "2"]
    assert command(*words).status == 0
    with monkeypatch.context() as patch:
        kill_at(patch, "before results")
        with pytest.raises(Killed):
            main(["resume", "r", "--epochs", "3", "--quiet"])
    assert Run("r").status == "unfinished"
    assert command("resume", "r", "--quiet").status == 0
    assert Run("r").results["epochs"] == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--epochs", "3"], "--epochs 3 is not more than the 3 of the run"),
        (["--epochs", "0"], "--epochs must be 1"),
        (["--lr", "0.1"], "--hang-exit, --log-ranks, --quiet"),
        (["--batch-size=8"], "unknown option --batch-size: a resume uses the options of"),
        ([], "for a longer run write trueloop resume r --epochs N"),
    ],
)
def test_what_a_resume_takes(command: Command, over: Run, words: list[str], says: str) -> None:
    said = command("resume", "r", *words)
    assert said.status == 2
    assert says in said.complaint


def test_a_resume_that_is_refused_leaves_the_run_as_it_was(command: Command, stopped: Run) -> None:
    (newest,) = stopped.checkpoints.glob("e*")
    manifest = newest / "manifest.json"
    facts = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(facts | {"format": 99}))
    before = {path: path.read_bytes() for path in stopped.path.rglob("*") if path.is_file()}
    said = command("resume", "r")
    assert said.status == 2
    assert "was written by a newer trueloop: update trueloop" in said.complaint
    assert before == {path: path.read_bytes() for path in stopped.path.rglob("*") if path.is_file()}
