"""A token file of 4 GB: the memory and time that training on it takes, and runs that are killed.

    python benchmarks/text_large.py [--gigabytes 4] [--kills 20] [--folder FOLDER] [--only command]

The file is made first (random ids, two bytes each, in FOLDER). Then

1. A new process builds a small transformer and takes some updates on one batch in memory. From
   there on its resident memory is measured: the process's own pages (anonymous) and those of the
   file that are mapped (which the system may take back at any time), at their highest. It opens the
   file, takes the first batch (timed), trains, and goes through a million contexts more without
   training. Beside it: the same million rows through a plain `numpy.memmap`, as nanoGPT reads them.
2. Runs on the file are killed (SIGKILL) at random moments and resumed until they end, and compared
   with one left alone: weights, optimizer, generators, scores and log, bit for bit.

3. `trueloop train text --data FILE`, as a command: its resident memory on the file of 4 GB beside
   that on one of 200 kB, the seconds to its first update on both, and runs of it that are killed at
   random moments and given again until they end.

Prints a table, writes benchmarks/results/text_large.json, and ends with 1 where a goal is missed.
Linux only, since it reads /proc.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before torch: a fork must not inherit half a thread pool

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import kill_cases
import numpy as np
import text_large_command
import torch
from common import RESULTS, machine, save_results, table
from kill_cases import Setup
from kill_trials import Reference, trial

from trueloop import Feed, LossOutput, Step, optimizers, schedules
from trueloop.tasks.text.text_data import TextData, TextOptions, read_text
from trueloop.tasks.text.transformer import Transformer, TransformerConfig

GOAL = {"megabytes": 500.0, "seconds": 1.0}
VOCABULARY, CONTEXT, BATCH = 1024, 128, 64
CASE = "text on a large file"
UPDATES = 40
_BLOCK = 1 << 25


def make(folder: Path, gigabytes: float) -> None:
    """Random ids: `train.bin` of so many GB (10**9 bytes), and a `val.bin` of 100,000 ids."""
    folder.mkdir(parents=True, exist_ok=True)
    count = int(gigabytes * 1e9) // 2
    if (folder / "train.bin").exists() and (folder / "train.bin").stat().st_size == 2 * count:
        return
    draws = np.random.default_rng(0)
    with (folder / "train.bin").open("wb") as file:
        for start in range(0, count, _BLOCK):
            ids = draws.integers(0, VOCABULARY, min(_BLOCK, count - start), dtype=np.uint16)
            file.write(ids.tobytes())
    draws.integers(0, VOCABULARY, 20_000, dtype=np.uint16).tofile(folder / "val.bin")


def opened(folder: Path) -> TextData:
    return read_text(folder, CONTEXT, TextOptions(tokenizer=f"ids:{VOCABULARY}"))


def new_step(**options: Any) -> Step:
    config = TransformerConfig(
        vocab_size=VOCABULARY, context=CONTEXT, layers=2, width=64, heads=2, dropout=0.1
    )
    model = Transformer(config)
    return Step(model, optimizers.adamw(model, 1e-3), next_token_loss, **options)


def next_token_loss(model: torch.nn.Module, batch: Any) -> LossOutput:
    tokens, targets = batch
    loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    return LossOutput(loss, targets.numel())


def resident() -> dict[str, float]:
    """MB of this process that are resident: its own, and of files."""
    status = Path("/proc/self/status").read_text()
    found = {name: re.search(rf"{name}:\s+(\d+) kB", status) for name in ("RssAnon", "RssFile")}
    return {name: int(match[1]) * 1024 / 1e6 for name, match in found.items() if match}


class Peak:
    """The highest resident memory above what there was when this was made."""

    def __init__(self) -> None:
        self._before = resident()
        self.highest = dict.fromkeys(self._before, 0.0)
        self.together = 0.0

    @property
    def base(self) -> float:
        """What there was then, in MB."""
        return sum(self._before.values())

    def look(self) -> None:
        above = {name: size - self._before[name] for name, size in resident().items()}
        self.highest = {name: max(self.highest[name], size) for name, size in above.items()}
        self.together = max(self.together, sum(above.values()))

    def figures(self) -> dict[str, float]:
        return {
            "anonymous MB": round(self.highest["RssAnon"], 1),
            "file MB": round(self.highest["RssFile"], 1),
            "together MB": round(self.together, 1),
        }


def measure(folder: Path, updates: int, batches: int) -> dict[str, Any]:
    """What a training on the file takes, in this process."""
    torch.set_num_threads(1)
    step = new_step()
    rows = torch.randint(VOCABULARY, (BATCH, CONTEXT))
    for _ in range(3):
        step((rows, rows))
    peak, began = Peak(), time.perf_counter()
    feed = Feed(opened(folder).train, BATCH, shuffle=True, seed=1)
    coming = feed.epoch(0)
    batch = next(coming)
    seconds = time.perf_counter() - began
    for _ in range(updates):
        step(batch, last=False)
        batch = next(coming)
        peak.look()
    began = time.process_time()
    for number, _ in zip(range(batches), coming, strict=False):
        if number % 50 == 0:
            peak.look()
    gathering = time.process_time() - began
    return {
        "tokens": len(feed._source._dataset.tokens),  # type: ignore[union-attr]
        "contexts per epoch": feed.samples,
        "first batch, seconds": round(seconds, 3),
        "updates": updates,
        "batches more": batches,
        **peak.figures(),
        "microseconds of processor per batch": round(1e6 * gathering / batches, 1),
    }


def measure_memmap(folder: Path, batches: int) -> dict[str, Any]:
    """The same number of rows at random places, as nanoGPT takes them."""
    torch.set_num_threads(1)
    data = np.memmap(folder / "train.bin", dtype=np.uint16, mode="r")
    peak, draws, began = Peak(), np.random.default_rng(1), time.process_time()
    for number in range(batches):
        starts = draws.integers(0, len(data) - CONTEXT, BATCH)
        for shift in (0, 1):
            torch.stack(
                [
                    torch.from_numpy(data[s + shift : s + shift + CONTEXT].astype(np.int64))
                    for s in starts
                ]
            )
        if number % 50 == 0:
            peak.look()
    gathering = time.process_time() - began
    return {
        **peak.figures(),
        "microseconds of processor per batch": round(1e6 * gathering / batches, 1),
    }


def kills(folder: Path, count: int, seed: int) -> dict[str, Any]:
    """Runs on the file, killed at random moments until `count` kills have met them."""

    def setup() -> Setup:
        data = opened(folder)
        return Setup(
            step=new_step(schedule=schedules.warmup_cosine()),
            train=Feed(data.train, 8, shuffle=True, seed=1),
            val=Feed(data.val, 32),
            updates=UPDATES,
        )

    kill_cases.CASES[CASE] = setup
    chance, done, problems = random.Random(seed), [], []
    with tempfile.TemporaryDirectory() as temporary:
        reference = Reference.of(CASE, Path(temporary) / "reference")
        while sum(one.kills for one in done) < count:
            found = trial(reference, Path(temporary) / "trial", chance, None)
            done.append(found)
            if found.problem:
                problems.append(found.problem)
                print(found.problem, flush=True)
    return {
        "runs": len(done),
        "kills": sum(one.kills for one in done),
        "equal": len(done) - len(problems),
        "updates of a run": UPDATES,
        "checkpoints of a run": reference.writes,
    }


def in_new_process(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--batches", type=int, default=16_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where the file is made, and stays")
    parser.add_argument("--only", choices=("library", "command"), help="the other part stays")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        work = {"ours": lambda: measure(options.folder, options.updates, options.batches),
                "memmap": lambda: measure_memmap(options.folder, options.batches)}  # fmt: skip
        print(json.dumps(work[options.case]()))
        return 0
    torch.set_num_threads(1)
    path = RESULTS / "text_large.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    parts = {name: known[name] for name in ("library", "command") if name in known}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        make(folder, options.gigabytes)
        if options.only != "command":
            parts["library"] = library(folder, options)
        if options.only != "library":
            parts["command"] = command(folder, options)
    met = all(part["met"] for part in parts.values())
    print(f"goal: {GOAL['seconds']} s, {GOAL['megabytes']:.0f} MB: {'met' if met else 'MISSED'}")
    print(save_results("text_large", {"goal": GOAL, "met": met, **parts}))
    return 0 if met else 1


def library(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Parts 1 and 2."""
    common = ["--folder", str(folder), "--batches", str(options.batches)]
    ours = in_new_process("--case", "ours", "--updates", str(options.updates), *common)
    plain = in_new_process("--case", "memmap", *common)
    killed = kills(folder, options.kills, options.seed)
    rows = [{"what": "trueloop", **{name: ours[name] for name in plain}}]
    print(table([*rows, {"what": "numpy.memmap", **plain}]))
    print(f"first batch after {ours['first batch, seconds']} s; {killed}")
    met = (
        ours["together MB"] <= GOAL["megabytes"]
        and ours["first batch, seconds"] <= GOAL["seconds"]
        and killed["equal"] == killed["runs"]
    )
    return {"met": met, "training": ours, "numpy.memmap": plain, "killed": killed}


def command(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Part 3."""
    small = folder / "small.bin"
    np.random.default_rng(1).integers(0, VOCABULARY, 100_000, dtype=np.uint16).tofile(small)
    files = folder / "train.bin", folder / "val.bin"
    with tempfile.TemporaryDirectory() as runs:
        found = text_large_command.measured(files[0], small, files[1], Path(runs))
        print(found, flush=True)
        killed = text_large_command.kills(*files, Path(runs), options.kills, options.seed)
    met = (
        found["MB more than on the small file"] <= GOAL["megabytes"]
        and found["seconds more than on the small file"] <= GOAL["seconds"]
        and not killed["differences"]
    )
    return {"date": machine()["date"], "met": met, "training": found, "killed": killed}


if __name__ == "__main__":
    raise SystemExit(main())
