"""`trueloop train` when a worker process is killed: one line, status 2, and a run to go on with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trueloop.run import Run

Command = Callable[..., Any]
TASK = '''
import multiprocessing
import os
import signal
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

import trueloop
from trueloop.tasks import Recipe, Splits


def kill_the_workers():
    for worker in multiprocessing.active_children():
        os.kill(worker.pid, signal.SIGKILL)
    for _ in range(20):
        time.sleep(0.01)


class Samples:
    def __len__(self):
        return 32

    def __getitem__(self, index):
        x = torch.rand(3) + index
        return x, x.sum()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x):
        moment = "kill in train" if self.training else "kill in eval"
        if os.path.exists(moment):
            os.remove(moment)
            kill_the_workers()
        return self.layer(x).flatten()


class Mine(trueloop.Task):
    """Samples that workers load."""

    kind = "regression"
    recipe = Recipe(epochs=3, batch_size=8, lr=1e-3, schedule="none")
    threads = 1

    def splits(self):
        if os.path.exists("own loader"):
            for batch in DataLoader(Samples(), 8, num_workers=1):
                kill_the_workers()
        train = Samples()
        if os.path.exists("loader"):
            train = DataLoader(train, 8, num_workers=1)
        return Splits(train=train, val=Samples())

    def model(self):
        return Net()

    def after_epoch(self, model, epoch, album):
        if epoch == 1 and os.path.exists("kill after epoch"):
            os.remove("kill after epoch")
            kill_the_workers()
'''


@pytest.fixture
def mine() -> str:
    Path("mine.py").write_text(TASK)
    return "mine.py:Mine"


def died(said: Any) -> bool:
    assert said.status == 2, said.err
    line: str = said.complaint
    assert line.startswith("trueloop: error: a DataLoader worker died (pid ")
    return line.endswith("it may have run out of memory: use fewer workers")


@pytest.mark.parametrize("moment", ["in train", "in eval", "after epoch", "loader"])
def test_a_run_whose_worker_was_killed_goes_on(command: Command, mine: str, moment: str) -> None:
    Path("loader" if moment == "loader" else f"kill {moment}").touch()
    workers = ["--workers", "1"]
    if moment == "loader":
        Path("kill in train").touch()
        workers = []
    every = ["--save-every", "1 updates"]
    assert died(command("train", mine, "--quiet", "--run", "new", *workers, *every))
    run = Run("new")
    assert run.status == "failed"
    assert "died" in run.results["error"]
    went_on = command("resume", "new", "--quiet")
    assert went_on.status == 0
    assert "to reach the saved position" in went_on.err if moment == "loader" else not went_on.err
    assert run.status == "finished"
    assert [line["update"] for line in run.metrics() if line["kind"] != "eval"] == list(
        range(1, 13)
    )


def test_a_worker_of_a_loader_that_the_task_reads_by_itself(command: Command, mine: str) -> None:
    Path("own loader").touch()
    assert died(command("train", mine, "--quiet", "--run", "new"))
    assert not Path("new").exists()
