"""Real signals to real processes: to a whole job with workers, and kills that nobody can catch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import warm_python
from trueloop.checkpoint import load_checkpoint
from trueloop.run import Run

SLOW = '''
import time

import torch
from torch import nn

import trueloop
from trueloop.tasks import Recipe, Splits


class Samples:
    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(0.004)
        x = torch.rand(3) + index
        return x, x.sum()


class Slow(trueloop.Task):
    """Samples that take their time, so that a signal always finds a worker at work."""

    kind = "regression"
    recipe = Recipe(epochs=3, batch_size=8, lr=0.01)
    threads = 1

    def splits(self):
        x = torch.rand(8, 3)
        return Splits(train=Samples(), val=(x, x.sum(1)))

    def model(self):
        return nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1), nn.Flatten(0))
'''


def start(run: str, *words: str) -> subprocess.Popen[str]:
    """Train in a job (a process group) of its own."""
    Path("slow.py").write_text(SLOW)
    command = [sys.executable, "-m", "trueloop", "train", "slow.py:Slow", "--quiet"]
    return warm_python.Popen(
        [*command, "--run", run, "--resume", "auto", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def wait_for(file: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not file.exists() or file.stat().st_size == 0:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def outcome(run: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The log without times, and the final weights."""
    lines = Run(run).metrics()
    log = [{k: v for k, v in line.items() if k not in ("time", "seconds")} for line in lines]
    weights = load_checkpoint(Run(run).checkpoints)["model"]
    return log, {name: tensor.tolist() for name, tensor in weights.items()}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_to_the_whole_job_ends_it_saved(number: signal.Signals) -> None:
    """As a terminal, timeout(1) and job schedulers send it: the workers get it as well."""
    process = start("job", "--workers", "2", "--epochs", "1000")
    wait_for(Path("job/metrics.jsonl"), process)
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + number, "")
    assert out.endswith("resume with: trueloop resume job\n")
    assert Run("job").status == "interrupted"


def test_killed_again_and_again_the_one_command_ends_with_the_same_run() -> None:
    straight = start("whole")
    assert straight.wait(timeout=60) == 0
    straight.communicate()
    kills = 0
    for delay in (0.0, 0.1, 0.25):
        process = start("killed", "--save-every", "2 updates")
        if kills == 0:
            wait_for(Path("killed/config.json"), process)
        else:
            wait_for(Path("killed/metrics.jsonl"), process)
        time.sleep(delay)
        process.kill()
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
    last = start("killed", "--save-every", "2 updates")
    _, err = last.communicate(timeout=60)
    assert (last.returncode, err) == (0, "")
    assert kills >= 1
    assert outcome("killed") == outcome("whole")
