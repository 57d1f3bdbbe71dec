"""`trueloop follow`: the curves of a run in the terminal."""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from rich.console import Console

from documents import is_shown, shown
from trueloop.cli import follow
from trueloop.run import Run
from trueloop.run.live_view import LiveView
from trueloop.run.log_reader import LogReader
from trueloop.run.terminal_chart import Curve, _dots, drawn

Command = Callable[..., Any]


def printed(view: LiveView, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(view.frame(width, height))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined,no-any-return]


@settings(deadline=None)
@given(
    arrays(np.float64, st.integers(1, 300), elements=st.floats(0, 1)),
    st.integers(2, 12),
    st.integers(2, 40),
)
def test_each_column_of_dots_spans_its_points(y: np.ndarray, rows: int, columns: int) -> None:
    """Against one point after the other: each of them has its dot."""
    x = np.linspace(0, 1, len(y)) if len(y) > 1 else np.zeros(1)
    dots = _dots(x, y, rows, columns)
    for at, value in zip(x, y, strict=True):
        column = min(int(at * columns), columns - 1)
        row = round((1 - value) * (rows - 1))
        assert dots[row, column], (at, value)
    assert dots.any(axis=0)[: int(x[-1] * (columns - 1)) + 1].all()  # a line without a gap


def test_a_spike_of_one_update_is_in_the_chart() -> None:
    x = np.arange(100_000.0)
    y = np.ones(100_000)
    y[77_777] = 9.0
    lines = drawn("loss", [Curve("loss", x, y, "")], 60, 10, "update")
    assert len(lines) == 10
    assert "9.000" in lines[1].plain
    assert lines[1].plain[10:].strip("\u2800 ")


@pytest.mark.parametrize(("width", "height"), [(120, 40), (80, 24), (40, 12)])
def test_a_frame_fits_into_its_terminal(spiral_run: Path, width: int, height: int) -> None:
    view = LiveView(Run(spiral_run))
    view.read()
    lines = printed(view, width, height)
    assert max(map(len, lines)) <= width
    assert len(lines) <= max(height, 14)
    text = " ".join(" ".join(lines).split())
    for part in ("spiral finished", "epoch 2/2", "update 64", "validation accuracy", "samples/s"):
        assert part in text
    assert any("\u2801" <= sign <= "\u28ff" for sign in text)


def test_once_prints_one_frame(command: Command, spiral_run: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "99")
    done = command("follow", spiral_run, "--once")
    assert done.status == 0
    assert "\x1b" not in done.out
    (block,) = shown("tests/cli/test_follow.py::test_once_prints_one_frame")
    assert is_shown(block, done.out, part=True), done.out


def test_without_a_terminal_there_is_a_line_now_and_then(
    command: Command, spiral_run: Path
) -> None:
    done = command("follow", spiral_run)
    (line,) = done.out.splitlines()
    assert "finished" in line
    assert "best" in line


def test_a_run_is_followed_to_its_end(
    spiral_run: Path, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    """While the log grows; only what was added is read, and results of a part before are none."""
    path = shutil.copytree(spiral_run, tmp_path / "run")
    (path / ".lock").write_text(f"pid {os.getpid()} on {socket.gethostname()}\n")
    log = (path / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (path / "metrics.jsonl").write_bytes(b"".join(log[:10]))
    read: list[int] = []
    real = LogReader._parsed
    monkeypatch.setattr(
        LogReader, "_parsed", lambda self, raw: (read.append(len(raw)), real(self, raw))[1]
    )
    view = LiveView(Run(path))
    time.sleep(0.01)
    (path / "metrics.jsonl").touch()
    view.read()
    assert view.end is None
    assert "running" in printed(view, 80, 24)[0]

    def grow(seconds: float) -> None:
        with (path / "metrics.jsonl").open("ab") as file:
            file.write(log[sum(read)] if sum(read) < len(log) else b"")
        if sum(read) == len(log):
            (path / "results.json").touch()

    monkeypatch.setattr(time, "sleep", grow)
    follow._print_lines(view, Console(), 1.0)
    assert read == [10] + [1] * (len(log) - 10)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 4  # the start, the two evaluations, the end
    assert "finished" in said[-1]


def test_the_time_left_is_that_of_the_recent_pace(tmp_path: Path) -> None:
    """100 updates of 1000 in 10 s: 90 s are left; and by epochs once there is an evaluation."""
    for config, left in (({"updates": 1000}, "1:30 left"), ({"epochs": 10}, "")):
        run = Run.create(tmp_path / next(iter(config)), config=config)
        lines = [
            f'{{"kind":"update","epoch":1,"batch":{k},"update":{k + 1},"loss":1.0,"grad_norm":1.0,'
            f'"lr":0.1,"samples":8,"skipped":false,"time":{0.1 * (k + 1):.4f}}}\n'
            for k in range(100)
        ]
        (run.path / "metrics.jsonl").write_text("".join(lines))
        view = LiveView(run)
        view.read()
        text = " ".join(line.plain for line in view.summary())
        assert left in text
        assert ("left" in text) is bool(left)


def test_a_killed_run_is_not_shown_as_running(
    command: Command, spiral_run: Path, tmp_path: Path
) -> None:
    """By its lock: which process had it, and on which host."""
    path = shutil.copytree(spiral_run, tmp_path / "killed")
    (path / "results.json").unlink()
    gone = subprocess.Popen(["true"])
    gone.wait()
    here = socket.gethostname()
    for owner, state in (
        (f"pid {gone.pid} on {here}\n", "ended without finishing; resume with: trueloop resume"),
        (f"pid {gone.pid} on far-away\n", "running"),
        (f"pid {os.getpid()} on {here}\n", "running"),
        ("", "running"),  # it is being locked, or cannot be
    ):
        (path / ".lock").write_text(owner)
        assert state in " ".join(command("follow", path, "--once").out.split()), owner
    (path / ".lock").unlink()
    shutil.rmtree(path / "checkpoints")
    done = command("follow", path)
    assert done.status == 0
    assert "has ended without finishing; it has no checkpoint: start it again" in done.out


def test_mistakes(command: Command, spiral_run: Path, tmp_path: Path) -> None:
    assert "no run at nowhere" in command("follow", "nowhere").complaint
    assert "must be from 0.1" in command("follow", spiral_run, "--seconds", "0").complaint
    path = shutil.copytree(spiral_run, tmp_path / "torn")
    log = path / "metrics.jsonl"
    log.write_text("{nothing\n" + log.read_text())
    assert "corrupt in line 1" in command("follow", path, "--once").complaint


def test_ctrl_c_ends_it_without_a_word(
    command: Command, spiral_run: Path, monkeypatch: Any
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(follow, "_print_lines", stop)
    done = command("follow", spiral_run)
    assert (done.status, done.out, done.err) == (0, "", "")
