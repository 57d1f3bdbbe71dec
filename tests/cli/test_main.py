"""The face of the command line: help, unknown verbs, errors in one line, a cheap start."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trueloop
import warm_python
from trueloop import cli
from trueloop.errors import DataError, NonFiniteError

Command = Callable[..., Any]


def test_help_lists_every_verb_with_an_example(command: Command) -> None:
    shown = command("--help")
    assert shown.status == 0
    assert not shown.err
    for verb in cli.VERBS:
        assert f"\n  {verb} " in shown.out
    assert "example:\n  trueloop train spiral" in shown.out
    assert command().out == shown.out


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_help_with_an_example(command: Command, verb: str) -> None:
    shown = command(verb, "--help")
    assert shown.status == 0
    assert shown.out.startswith(f"usage: trueloop {verb}")
    assert f"example:\n  trueloop {verb} " in shown.out


def test_version(command: Command) -> None:
    assert command("--version").out == f"trueloop {trueloop.__version__}\n"


def test_unknown_verb(command: Command) -> None:
    said = command("trian", "spiral")
    assert said.status == 2
    assert said.complaint == "trueloop: error: unknown verb 'trian': did you mean 'train'?"


def raising(error: BaseException) -> Callable[[list[str]], int]:
    def dispatch(words: list[str]) -> int:
        raise error

    return dispatch


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (DataError("two\nlines: mend it"), 2, "trueloop: error: two lines: mend it"),
        (
            OSError(errno.ENOSPC, "No space left on device", "runs/a/metrics.jsonl"),
            2,
            "trueloop: error: no space left on device (runs/a/metrics.jsonl): free some space",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 2, "permission denied (/x): "),
        (
            NonFiniteError("loss is NaN: lower --lr", update=1, epoch=0, batch=1),
            1,
            "trueloop: error: loss is NaN: lower --lr",
        ),
        (KeyboardInterrupt(), 130, "trueloop: interrupted"),
        (MemoryError(), 2, "trueloop: error: out of memory: lower --batch-size"),
    ],
)
def test_errors_are_one_line_and_a_status(
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    words: str,
) -> None:
    monkeypatch.setattr(cli, "_dispatch", raising(error))
    said = command("train")
    assert said.status == status
    assert words in said.complaint


def test_a_mistake_of_ours_is_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_dispatch", raising(AssertionError("ours")))
    with pytest.raises(AssertionError, match="ours"):
        cli.main(["train"])


def test_help_and_runs_import_no_heavy_library() -> None:
    code = (
        "import sys\n"
        "from trueloop.cli import main\n"
        "assert main(['--help']) == 0\n"
        "assert not {'torch', 'numpy', 'rich', 'jsonargparse'} & set(sys.modules)\n"
        "assert main(['runs']) == 0\n"
        "heavy = {'torchmetrics', 'plotly', 'sklearn', 'matplotlib', 'polars', 'PIL', 'pandas'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert "no runs in runs yet" in done.stdout


def test_the_help_of_a_verb_does_not_wait_for_torch() -> None:
    """All but those whose options are read from classes of the training."""
    code = (
        "import sys\n"
        "from trueloop.cli import VERBS, main\n"
        "for verb in set(VERBS) - {'train', 'resume', 'generate'}:\n"
        "    assert main([verb, '--help']) == 0\n"
        "    assert 'torch' not in sys.modules, verb\n"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = "import sys, trueloop.cli as cli; sys.exit(cli.main(['--help']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_a_reader_of_a_table_that_goes_away_is_no_error(spiral_run: Path) -> None:
    code = "import sys, trueloop.cli as cli; sys.exit(cli.main(sys.argv[1:]))"
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-c", code, "runs", str(spiral_run)]
    done = warm_python.run(words, start=warm_python.Bare, stdout=write, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_closed_stdout_is_no_error(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["--help"]) == 0


LONG = "x" * 5_000


@pytest.mark.parametrize(
    "words",
    [
        [LONG],
        [f"--{LONG}"],
        ["check", LONG],
        ["check", "x y " * 1_250],
        ["check", ".", f"--{LONG}"],
        ["check", ".", "--format", LONG],
        ["check", ".", "--format", "x y " * 1_250],
        ["check", ".", "--jobs", LONG],
        ["check", ".", "--select", LONG],
        ["check", ".", "--ignore", f"TL101,{LONG}"],
        ["explain", LONG],
        ["explain", "TL101", LONG],
        ["train", LONG],
        ["train", "spiral", "--lr", LONG],
        ["train", "spiral", "--optimizer", LONG],
        ["train", "spiral", f"--{LONG}", "1"],
        ["train", "table", "--data", LONG],
        ["train", f"{LONG}.py:Task"],
        ["resume", LONG],
        ["evaluate", LONG],
        ["predict", LONG, "--data", LONG, "--out", LONG],
        ["report", LONG],
        ["runs", LONG],
        ["runs", ".", "--sort", LONG],
        ["replay", LONG],
        ["lab", "--only", LONG],
        ["verify-resume", LONG],
        ["watch", LONG],
        ["watch", "-m", LONG],
        ["watch", f"--{LONG}", "a.py"],
        ["watch", "--first", LONG, "a.py"],
        ["watch", "--select", LONG, "a.py"],
        ["watch", "--output", f"{LONG}/{LONG}", "a.py"],
    ],
    ids=lambda words: " ".join(word[:8].strip() for word in words),
)
def test_what_a_long_argument_is_repeated_of_fits_a_line(
    command: Command, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = command(*words)
    assert said.status == 2
    assert said.err.count("\n") == 1
    assert len(said.err) < 2_100
    assert "Traceback" not in said.err
    assert not list(tmp_path.iterdir())
