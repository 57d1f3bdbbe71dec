"""A rank killed under torchrun --max-restarts: the run ends as the one that was left alone."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import torch

import warm_torchrun
from on_ranks import on_ranks
from trueloop import load_checkpoint
from trueloop.cli import main

LAUNCH = Path(__file__).parents[1] / "examples" / "launch" / "torchrun.sh"
OPTIONS = (
    "--epochs",
    "12",
    "--save-every",
    "10 updates",
    "--quiet",
    "--no-doctor",
    "--threads",
    "1",
)


def left_alone(run: str) -> int:
    return main(["train", "spiral", "--run", run, *OPTIONS])


def started(run: Path) -> subprocess.Popen[bytes]:
    """torchrun with two ranks, by the launch recipe."""
    options = warm_torchrun.write_command(run.parent / "torchrun", run.parent / "ranks")
    options["env"] |= {"RANKS": "2", "PORT": "0", "RESTARTS": "2"}
    # A rank that has lost the other ends soon after it: torchrun is to look before that.
    options["env"]["PET_MONITOR_INTERVAL"] = "0.01"
    return subprocess.Popen(
        [LAUNCH, "spiral", "--run", str(run), *OPTIONS],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        **options,
    )


def ended(torchrun: subprocess.Popen[bytes]) -> str:
    """What it printed; all processes are gone after that."""
    try:
        output, _ = torchrun.communicate(timeout=100)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(torchrun.pid, signal.SIGKILL)
    text = output.decode()
    assert torchrun.returncode == 0, text
    return text


def log(run: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("time", "seconds")} for line in lines]


def test_a_run_whose_rank_was_killed_ends_bitwise_as_the_one_left_alone(tmp_path: Path) -> None:
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    torchrun, checkpoints = started(killed), killed / "checkpoints"
    end = time.monotonic() + 60
    while not any(re.match(r"e\d+-b\d+-u\d+$", p.name) for p in checkpoints.glob("e*")):
        assert torchrun.poll() is None, ended(torchrun)
        assert time.monotonic() < end
        time.sleep(0.01)
    before = warm_torchrun.ranks(tmp_path / "ranks")
    assert len(before) == 2
    os.kill(before[1], signal.SIGKILL)
    saved = sorted(checkpoints.glob("e*"))[-1].name
    assert on_ranks(2, left_alone, str(alone)) == [0, 0]  # while torchrun starts its ranks again
    assert f"failed (exitcode: -9) local_rank: 1 (pid: {before[1]})" in ended(torchrun)
    states = [load_checkpoint(run / "checkpoints") for run in (alone, killed)]
    assert saved < max(p.name for p in checkpoints.glob("e*")), "it went on after the kill"
    wanted, found = [state["model"] for state in states]
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)
    assert states[0]["step"]["counters"] == states[1]["step"]["counters"]
    assert log(alone) == log(killed)
