"""The commands as a user runs them: processes of their own, a real Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import warm_python

TRUELOOP = [sys.executable, "-m", "trueloop"]
# One thread per process: this test must not depend on how many cores others leave.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def trueloop(*words: str) -> subprocess.CompletedProcess[str]:
    return warm_python.run([*TRUELOOP, *words], text=True, env=ENVIRONMENT)


def wait_for_updates(log: Path, count: int) -> None:
    """Until the run has logged so many lines; fails after a minute."""
    deadline = time.monotonic() + 60
    while not log.exists() or log.read_text().count("\n") < count:
        assert time.monotonic() < deadline, "the run did not come so far in time"
        time.sleep(0.05)


def test_train_interrupt_resume_and_all_the_rest() -> None:
    process = warm_python.Popen(
        [*TRUELOOP, "train", "spiral", "--run", "runs/a", "--epochs", "100000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    wait_for_updates(Path("runs/a/metrics.jsonl"), 100)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err == ""
    assert out.splitlines()[-1] == "resume with: trueloop resume runs/a"
    results = json.loads(Path("runs/a/results.json").read_text())
    assert results["status"] == "interrupted"
    assert Path("runs/a/report.html").is_file()

    resumed = trueloop("resume", "runs/a", "--max-minutes", "0.005")
    assert resumed.returncode == 0, resumed.stderr
    after = json.loads(Path("runs/a/results.json").read_text())
    assert after["status"] == "out of time"
    assert after["updates"] > results["updates"]

    scores = json.loads(trueloop("evaluate", "runs/a", "--json").stdout)["scores"]
    assert scores["val"]["accuracy"] == after["scores"]["val_accuracy"]
    assert trueloop("report", "runs/a").stdout == "runs/a/report.html\n"
    assert "out of time" in trueloop("runs").stdout


def test_interrupted_before_training_begins() -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, signal, sys, trueloop.cli as cli\n"
            "cli._dispatch = lambda words: os.kill(os.getpid(), signal.SIGINT)\n"
            "sys.exit(cli.main([]))",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "trueloop: interrupted\n"
