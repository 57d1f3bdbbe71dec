"""`trueloop train --run DIR --resume auto`: one command, again and again, to the end of a run."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trueloop.checkpoint import load_checkpoint
from trueloop.run import Run, claimed

Command = Callable[..., Any]

STOPPED = ("--max-minutes", "1e-9")


def log_of(path: str) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in line.items() if name not in ("time", "seconds")}
        for line in Run(path).metrics()
    ]


def assert_same_run(path: str, other: str) -> None:
    """The same log, results and weights."""
    assert log_of(path) == log_of(other)
    a, b = (load_checkpoint(Run(run).checkpoints)["model"] for run in (path, other))
    assert all(torch.equal(a[name], b[name]) for name in a)
    for name in ("status", "scores", "best_epoch", "updates", "test_scores"):
        assert Run(path).results[name] == Run(other).results[name]


@pytest.fixture
def auto(command: Command, line: str) -> Command:
    """The one command of a cluster script; other words may be added."""

    def run(*words: object) -> Any:
        return command("train", line, "--run", "auto", "--resume", "auto", "--quiet", *words)

    return run


@pytest.fixture
def whole(command: Command, line: str) -> str:
    """The same run, never stopped."""
    assert command("train", line, "--run", "whole", "--quiet").status == 0
    return "whole"


@pytest.mark.parametrize("exists", [False, True])
def test_it_starts_goes_on_and_says_when_it_is_done(
    auto: Command, whole: str, exists: bool
) -> None:
    if exists:
        Path("auto").mkdir()
    assert auto(*STOPPED).status == 0
    assert Run("auto").status == "out of time"
    assert auto("--max-minutes", "60").status == 0
    assert_same_run("auto", whole)
    before = {path: path.stat().st_mtime_ns for path in Path("auto").rglob("*")}
    done = auto()
    assert (done.status, done.err) == (0, "")
    assert done.out == "auto has finished: there is nothing left to do\n"
    assert {path: path.stat().st_mtime_ns for path in Path("auto").rglob("*")} == before


def test_what_is_not_given_is_what_the_run_began_with(auto: Command) -> None:
    assert auto("--lr", "0.01", "--epochs", "2", *STOPPED).status == 0
    assert auto("--epochs", "2", "--max-minutes", "null").status == 0
    assert Run("auto").results["epochs"] == 2
    assert Run("auto").config["lr"] == 0.01
    assert auto("--lr=1e-2", "--epochs=2", "--device=cpu").out.startswith("auto has finished")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--lr", "0.2"], "--lr is 0.2, and the run in {run} was started with 0.05: leave --lr"),
        (["--lr=0.2", "--points=32"], "--points is 32, and the run in {run} was started with 64"),
        (["--clip-value=1"], "--clip-value is 1.0, and the run in {run} was started with None"),
        (["--patience", "3"], "--patience is 3"),
    ],
)
@pytest.mark.parametrize("over", [False, True])
def test_another_value_than_the_runs_is_refused(
    auto: Command, words: list[str], said: str, over: bool
) -> None:
    auto(*(() if over else STOPPED))
    before = log_of("auto")
    done = auto(*words)
    assert done.status == 2
    assert said.format(run=Path("auto").absolute()) in done.complaint
    assert log_of("auto") == before


def test_a_configuration_file_has_to_agree_too(auto: Command) -> None:
    auto(*STOPPED)
    Path("mine.yaml").write_text("batch_size: 4\n")
    assert "--batch-size is 4" in auto("--config", "mine.yaml").complaint
    assert auto("--config", "auto/config.json", "--max-minutes", "60").status == 0
    assert Run("auto").status == "finished"


def test_another_task_than_the_runs_is_refused(auto: Command, command: Command, line: str) -> None:
    auto(*STOPPED)
    said = command("train", "spiral", "--run", "auto", "--resume", "auto")
    assert said.status == 2
    assert f"is a run of the task {line}, not of spiral" in said.complaint


def killed_early(auto: Command) -> Run:
    """A run that was killed in its first update's log line, before any checkpoint."""
    auto(*STOPPED)
    run = Run("auto")
    for path in [run.path / "results.json", *sorted(run.checkpoints.rglob("*"), reverse=True)]:
        path.rmdir() if path.is_dir() else path.unlink()
    (run.checkpoints / ".e00000-b00001-u000000001.77.tmp").mkdir()
    (run.path / "metrics.jsonl").open("a").write('{"kind":"upd')
    (run.path / "job-17.out").write_text("of the scheduler's\n")
    return run


def test_a_run_killed_before_its_first_checkpoint_starts_again(auto: Command, whole: str) -> None:
    run = killed_early(auto)
    done = auto("--max-minutes", "60")
    assert done.status == 0
    assert done.out.startswith("auto ended before its first checkpoint: it starts again\n")
    assert_same_run("auto", whole)
    assert (run.path / "job-17.out").read_text() == "of the scheduler's\n"
    assert not list(run.checkpoints.glob(".*"))
    assert run.task_state["kind"] == "regression"


def test_failing_again_leaves_the_directory(auto: Command) -> None:
    run = killed_early(auto)
    (run.path / "config.json").write_text(
        (run.path / "config.json").read_text().replace('"broken": false', '"broken": true')
    )
    said = auto()
    assert (said.status, said.complaint) == (2, "trueloop: error: the data is broken: mend it")
    assert (run.path / "job-17.out").exists()


def test_a_run_killed_while_it_was_made_starts(auto: Command, whole: str) -> None:
    Path("auto").mkdir()
    Path("auto/environment.json").write_text("{}")
    Path("auto/.config.json.123.tmp").write_text("{")
    assert auto().status == 0
    assert_same_run("auto", whole)
    assert not Path("auto/.config.json.123.tmp").exists()


def test_a_folder_of_something_else_is_refused(auto: Command) -> None:
    Path("auto").mkdir()
    Path("auto/environment.json").write_text("{}")
    Path("auto/thesis.tex").write_text("precious")
    said = auto()
    assert said.status == 2
    assert "exists and is not empty" in said.complaint
    assert len(list(Path("auto").iterdir())) == 2


def test_checkpoints_that_are_all_damaged_are_no_reason_to_start_again(auto: Command) -> None:
    auto(*STOPPED)
    before = log_of("auto")
    for state in Run("auto").checkpoints.rglob("state.pt"):
        state.write_bytes(b"")
    said = auto()
    assert said.status == 2
    assert "state.pt is damaged" in said.complaint
    assert log_of("auto") == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--resume", "auto"], "--resume auto needs the run: add --run DIR"),
        (["--resume", "perhaps", "--run", "x"], "unknown resume 'perhaps'"),
    ],
)
def test_what_it_is_asked(command: Command, words: list[str], said: str) -> None:
    done = command("train", "spiral", *words)
    assert done.status == 2
    assert said in done.complaint


def test_never_is_the_default(auto: Command, command: Command, line: str) -> None:
    auto(*STOPPED)
    for words in ([], ["--resume", "never"]):
        said = command("train", line, "--run", "auto", *words)
        assert said.status == 2
        assert "exists and is not empty" in said.complaint
    assert "resume" not in Run("auto").config


SIGNALLED = '''
import os
from dataclasses import dataclass

from line_task import Line


class Signalled(Line):
    """Sends itself signals while it trains, once."""

    @dataclass(kw_only=True)
    class Options(Line.Options):
        signals: list[str] | None = None
        """Their numbers."""

    def loss_fn(self):
        inner, left = super().loss_fn(), [int(one) for one in self.options.signals]
        calls = []

        def loss_fn(model, batch):
            calls.append(0)
            if len(calls) == 8 and not os.path.exists("sent"):
                open("sent", "w").close()
                for number in left:
                    os.kill(os.getpid(), number)
            return inner(model, batch)

        return loss_fn
'''


@pytest.fixture
def signalled(command: Command, line_file: Path) -> Command:
    """Trains with signals in the second epoch, and once more without them."""
    path = line_file.with_name("signalled.py")
    path.write_text(SIGNALLED)

    def run(numbers: str) -> Any:
        words = ["--signals", numbers, "--run", "a run", "--resume", "auto", "--quiet"]
        return command("train", f"{path}:Signalled", *words)

    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_the_status_after_a_signal_and_going_on(
    signalled: Command, whole: str, number: signal.Signals
) -> None:
    done = signalled(str(int(number)))
    assert (done.status, done.err) == (128 + number, "")
    assert done.out.splitlines()[-1] == "resume with: trueloop resume 'a run'"
    assert Run("a run").status == "interrupted"
    assert signalled(str(int(number))).status == 0
    assert_same_run("a run", whole)


def test_the_status_after_a_second_signal(signalled: Command, whole: str) -> None:
    both = f"{int(signal.SIGUSR1)},{int(signal.SIGTERM)}"
    done = signalled(both)
    assert done.status == 128 + signal.SIGTERM
    assert done.complaint == "trueloop: interrupted; resume with: trueloop resume 'a run'"
    assert Run("a run").status == "unfinished"
    assert os.path.exists("sent")
    assert signalled(both).status == 0
    assert_same_run("a run", whole)


@pytest.mark.parametrize("there", ["a run", "a run just being made", "nothing but a lock"])
def test_a_second_job_in_the_same_directory_is_refused(
    auto: Command, command: Command, whole: str, there: str
) -> None:
    """As where a cluster submits a job again while the old one still lives."""
    if there == "a run":
        auto(*STOPPED)
    else:
        Path("auto").mkdir()
    if there == "a run just being made":
        Path("auto/environment.json").write_text("{}")
    waiting, let_go = os.pipe()
    ready, said = os.pipe()
    other = os.fork()
    if not other:
        with claimed(Path("auto")):
            os.write(said, b"in")
            os.close(let_go)
            os.read(waiting, 1)
        os._exit(0)
    os.read(ready, 2)
    before = sorted(Path("auto").rglob("*"))
    answers = [auto("--max-minutes", "60")]
    if there == "a run":
        answers.append(command("resume", "auto"))
    for answer in answers:
        assert answer.status == 2
        assert f"auto is being trained by a different process (pid {other} on" in answer.complaint
    assert sorted(Path("auto").rglob("*")) == before
    os.kill(other, signal.SIGKILL)
    os.waitpid(other, 0)
    assert auto("--max-minutes", "60").status == 0
    assert_same_run("auto", whole)
    assert not Path("auto/.lock").exists()
