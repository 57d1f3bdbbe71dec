"""`trueloop train text --data FILE` on a large token file, watched from outside: for text_large."""

from __future__ import annotations

import math
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueloop.cli._compare_runs import compare

VOCABULARY, CONTEXT, BATCH = 1024, 128, 8
UPDATES, FEW, SAVE_EVERY, EVAL_EVERY = 60, 10, 4, 20
_SHAPE = ["--context", CONTEXT, "--layers", 2, "--width", 64, "--heads", 2, "--dropout", 0.1]
TURNS = 2
_LOOK = 0.02
"""Seconds between two looks at a process."""


def words(data: Path, val: Path, run: Path, updates: int, every: int) -> list[str]:
    """The command that trains so many updates on the file `data`, validates on `val` and saves
    every so many; given again, it goes on with the run."""
    given = [
        "train", "text", "--data", data, "--val-data", val, "--tokenizer", f"ids:{VOCABULARY}",
        *_SHAPE, "--batch-size", BATCH, "--updates", updates, "--eval-every",
        f"{EVAL_EVERY} updates", "--save-every", f"{every} updates", "--threads", 1,
        "--sample-tokens", 16, "--quiet", "--run", run, "--resume", "auto",
    ]  # fmt: skip
    return [sys.executable, "-m", "trueloop", *map(str, given)]


@dataclass
class Watched:
    """A command while it runs, and what it took."""

    peak: float = 0.0
    """MB that were resident at most: its own pages and those of files."""
    first_saved: float | None = None
    """Seconds from the start to the first checkpoint."""
    seconds: float = 0.0
    was_killed: bool = False

    @classmethod
    def of(cls, command: list[str], run: Path, kill_after: float | None = None) -> Watched:
        """Give the command, which trains `run`, and wait for its end, or kill it after so many
        seconds.

        Raises `RuntimeError` with its complaint where it fails.
        """
        found, began = cls(), time.perf_counter()
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              env=environment) as process:  # fmt: skip
            while process.poll() is None:
                found.seconds = time.perf_counter() - began
                if kill_after is not None and found.seconds > kill_after:
                    process.send_signal(signal.SIGKILL)
                    break
                found._look(process.pid, run)
                time.sleep(_LOOK)
            assert process.stderr is not None
            complaint = process.stderr.read().decode()
        found.was_killed = process.returncode == -signal.SIGKILL
        if process.returncode and not found.was_killed:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {complaint}")
        return found

    def _look(self, process: int, run: Path) -> None:
        with suppress(OSError):  # it has ended meanwhile
            status = Path(f"/proc/{process}/status").read_text()
            sizes = re.findall(r"(?:RssAnon|RssFile|RssShmem):\s+(\d+) kB", status)
            self.peak = max(self.peak, sum(map(int, sizes)) * 1024 / 1e6)
        if self.first_saved is None and any((run / "checkpoints").glob("[!.]*")):
            self.first_saved = self.seconds


def measured(large: Path, small: Path, val: Path, folder: Path) -> dict[str, Any]:
    """The command on the large file and on a small one, in turns; a checkpoint after each update
    shows when the first batch was there."""
    found: dict[str, list[Watched]] = {"small": [], "large": []}
    for turn in range(1 + TURNS):
        for name, data in (("small", small), ("large", large)):
            run = folder / f"{name}-{turn}"
            one = Watched.of(words(data, val, run, FEW, 1), run)
            if turn:  # before, the disk is read
                found[name].append(one)
    peak = {name: max(one.peak for one in each) for name, each in found.items()}
    first = {
        name: statistics.median(one.first_saved or math.inf for one in each)
        for name, each in found.items()
    }
    return {
        "MB resident at most": round(peak["large"], 1),
        "MB more than on the small file": round(peak["large"] - peak["small"], 1),
        "seconds to the first update": round(first["large"], 2),
        "seconds more than on the small file": round(first["large"] - first["small"], 2),
    }


def kills(train: Path, val: Path, folder: Path, count: int, seed: int) -> dict[str, Any]:
    """Runs of the command, killed at random moments and given again until they end, and compared
    with one that was left alone: log, weights, optimizer, generators, position, scores."""
    straight = folder / "straight"
    reference = Watched.of(words(train, val, straight, UPDATES, SAVE_EVERY), straight)
    chance, kills_made, runs, problems = random.Random(seed), 0, 0, []
    moments: list[float] = []
    while kills_made < count:
        run, wanted, here = folder / f"killed-{runs}", chance.randint(1, 4), 0
        while True:
            moment = chance.uniform(0, reference.seconds) if here < wanted else None
            done = Watched.of(words(train, val, run, UPDATES, SAVE_EVERY), run, moment)
            if not done.was_killed:
                break
            here += 1
            moments.append(round(done.seconds, 2))
        runs += 1
        kills_made += here
        problems += [f"run {runs}: {each.where}: {each.what}" for each in compare(straight, run)]
        print(f"run {runs}: {here} kills, {kills_made} in all; {problems or 'equal'}", flush=True)
    return {
        "runs": runs,
        "kills": kills_made,
        "differences": problems,
        "seconds of a run left alone": round(reference.seconds, 1),
        "killed after seconds": moments,
    }
