"""How `trueloop train` on two ranks ends: a signal, a death, a mistake; said once, nothing left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import warm_torchrun
from on_ranks import Ending, endings
from trueloop.checkpoint import load_checkpoint
from trueloop.cli import main
from trueloop.run import Run

SLOW = '''
import os
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
        if os.environ.get("FAILS") == os.environ["RANK"] and index == 40:
            raise OSError("cannot read photo.jpg")
        x = torch.rand(3) + index
        return x, x.sum()


class Slow(trueloop.Task):
    """Samples that take their time, so that a signal always finds a worker at work."""

    kind = "regression"
    recipe = Recipe(epochs=40, batch_size=8, lr=0.001)
    threads = 1

    def splits(self):
        x = torch.rand(8, 3)
        return Splits(train=Samples(), val=(x, x.sum(1)))

    def model(self):
        return nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1), nn.Flatten(0))
'''
WORDS = ["train", "slow.py:Slow", "--quiet", "--run", "r", "--save-every", "4 updates"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text(SLOW)


def _command(folder: str, fails: str, *words: str) -> None:
    os.chdir(folder)
    os.environ["FAILS"] = fails
    sys.exit(main([*WORDS, *words]))


def _train(
    *words: str, fails: str = "", act: Callable[[list[int]], object] | None = None
) -> list[Ending]:
    return endings(2, _command, os.getcwd(), fails, *words, act=act, seconds=60.0)


def _trains() -> None:
    """Wait until the run has a checkpoint."""
    deadline = time.monotonic() + 60
    while not list(Path("r/checkpoints").glob("e*")) and time.monotonic() < deadline:
        time.sleep(0.02)


def _check_whole() -> dict[str, Any]:
    """The newest checkpoint, of which every hash is verified; no other file is there."""
    names = [path.name for path in Path("r/checkpoints").iterdir() if path.is_dir()]
    assert all(re.fullmatch(r"e\d{5}-b\d{5}-u\d{9}", name) for name in names), names
    return load_checkpoint(Path("r/checkpoints"))


def test_a_signal_to_one_rank_ends_the_run_saved() -> None:
    def act(pids: list[int]) -> None:
        _trains()
        os.kill(pids[1], signal.SIGUSR1)

    ended = _train(act=act)
    assert [each.status for each in ended] == [128 + signal.SIGUSR1] * 2
    assert not any(each.stderr for each in ended)
    assert Run(Path("r")).results["status"] == "interrupted"
    updates = Run(Path("r")).results["updates"]
    assert _check_whole()["step"]["counters"][2] == updates


def test_data_that_one_rank_cannot_read_ends_both() -> None:
    ended = _train(fails="1")
    assert [each.status for each in ended] == [2, 2]
    said = "".join(each.stderr for each in ended)
    assert said.startswith("trueloop: error: rank 1: sample 40 of epoch ")
    assert said.count("\n") == 1


def test_a_mistake_of_all_ranks_is_printed_once() -> None:
    ended = _train("--epochs", "many")
    assert [each.status for each in ended] == [2, 2]
    said = "".join(each.stderr for each in ended)
    assert said.count("\n") == 1
    assert said.startswith("trueloop: error: --epochs must be a whole number")


def _torchrun() -> subprocess.Popen[str]:
    """torchrun in a process group of its own, as a scheduler starts it."""
    launch = ["--standalone", "--nproc-per-node=2", "-m", "--", "trueloop"]
    return warm_torchrun.start(
        [*launch, *WORDS, "--workers", "1"],
        Path("ranks"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_sigterm_to_the_whole_job_is_left_alone_by_its_workers() -> None:
    launched = _torchrun()
    _trains()
    os.killpg(launched.pid, signal.SIGTERM)
    _, said = launched.communicate(timeout=60)
    assert launched.returncode != 0
    assert "Unable to shutdown process" not in said, "torchrun has not had to kill them"
    assert "DataLoader worker" not in said
    assert Run(Path("r")).results["status"] == "interrupted"
    assert _check_whole()["step"]["counters"][2] == Run(Path("r")).results["updates"]


def test_a_rank_that_is_killed_is_named_before_torchrun_says_anything() -> None:
    launched = _torchrun()
    _trains()
    began = time.monotonic()
    os.kill(warm_torchrun.ranks(Path("ranks"))[1], signal.SIGKILL)
    _, said = launched.communicate(timeout=60)
    assert time.monotonic() - began < 20
    assert launched.returncode != 0
    ours = [line for line in said.splitlines() if line.startswith("trueloop: ")]
    assert len(ours) == 1, said
    assert re.match(r"trueloop: error: rank 1 \(process \d+ on \S+\) died without", ours[0])
    assert said.index(ours[0]) < said.index("exitcode")
    _check_whole()
