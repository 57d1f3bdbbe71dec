"""A Parquet file of 4 GB: the memory and time that training on it takes, and runs that are killed.

    python benchmarks/table_large.py [--gigabytes 4] [--kills 20] [--folder FOLDER]

The file is made first (31 columns of float32 in row groups of 131,072 rows, uncompressed). Then

1. A new process imports torch and polars (its resident memory then is the base), opens the file
   as `trueloop train table` does, for the first time: the statistics of all columns are found. A
   second process finds them in the cache. Each takes the first batch (timed), trains, and goes
   through more batches without training. Resident memory above the base is measured at its
   highest: the process's own pages and those of files together.
2. The same in a third process with `trueloop train` itself, by the system's own highest figure.
3. Runs on the file are killed (SIGKILL) at random moments and resumed until they end, and compared
   with one left alone: weights, optimizer, generators, scores and log, bit for bit.

Prints a table, writes benchmarks/results/table_large.json, and ends with 1 where a goal is missed.
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
import torch
from common import save_results, table
from kill_cases import Setup
from kill_trials import Reference, trial
from text_large import Peak

from trueloop import Feed, Step, optimizers, schedules
from trueloop.tasks import Splits
from trueloop.tasks.table import Table

GOAL = {"megabytes": 600.0, "seconds": 3.0}
CASE = "table on a large file"
COLUMNS, GROUP, BATCH, UPDATES = 30, 131_072, 256, 30
_KINDS = 8
"""Different row groups of the file, which are written again and again."""


def make(folder: Path, gigabytes: float) -> None:
    """`train.parquet` of so many GB (10**9 bytes), and `val.parquet` of 20,000 rows."""
    import polars as pl

    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "train.parquet"
    groups = max(1, round(gigabytes * 1e9 / (4 * (COLUMNS + 1) * GROUP)))
    if file.exists() and abs(file.stat().st_size / (gigabytes * 1e9) - 1) < 0.02:
        return
    draws = np.random.default_rng(0)
    frames = []
    for _ in range(_KINDS):
        columns = {f"x{k}": draws.standard_normal(GROUP, dtype=np.float32) for k in range(COLUMNS)}
        columns["y"] = columns["x0"] * columns["x1"] + 0.1 * columns["x2"]
        frames.append(pl.DataFrame(columns))
    every = pl.concat([frames[k % _KINDS].lazy() for k in range(groups)])
    every.sink_parquet(file, row_group_size=GROUP, compression="uncompressed")
    frames[0].head(20_000).write_parquet(folder / "val.parquet")


def opened(folder: Path) -> tuple[Table, Splits]:
    options = Table.Options(
        target="y", streaming="always", val_data=folder / "val.parquet", test_share=0, width=64
    )
    task = Table(options, data=folder / "train.parquet", seed=0)
    task.quiet = True
    return task, task.splits()


def new_step(task: Table, **options: Any) -> Step:
    model = task.model()
    return Step(model, optimizers.adamw(model, 1e-3), task.loss_fn(), clip_norm=1.0, **options)


def measure(folder: Path, updates: int, batches: int) -> dict[str, Any]:
    """What a training on the file takes, in this process."""
    import polars as pl

    torch.set_num_threads(1)
    pl.DataFrame({"x": [1.0]}).lazy().sum().collect()
    peak, began = Peak(), time.perf_counter()
    base = peak.base
    task, splits = opened(folder)
    known = time.perf_counter()
    peak.look()
    step = new_step(task)
    feed = Feed(splits.train, BATCH)
    coming = feed.epoch(0)
    batch = next(coming)
    first = time.perf_counter()
    for _ in range(updates):
        step(batch, last=False)
        batch = next(coming)
        peak.look()
    began_rows = time.process_time()
    rows = 0
    for number, _ in zip(range(batches), coming, strict=False):
        rows += BATCH
        if number % 20 == 0:
            peak.look()
    seconds = time.process_time() - began_rows
    return {
        "rows": feed.samples,
        "base MB": round(base, 1),
        "statistics, seconds": round(known - began, 2),
        "first batch, seconds": round(first - began, 2),
        "updates": updates,
        "rows without training": rows,
        "rows per second of processor": round(rows / max(seconds, 1e-9)),
        **peak.figures(),
        "system's highest MB": highest(),
    }


def highest() -> float:
    """MB that were resident in this process at its highest, as the system saw it. (The figure of
    `resource.getrusage` may be that of the process that started this one.)"""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return round(int(found[1]) * 1024 / 1e6, 1)


def command(folder: Path, updates: int) -> dict[str, Any]:
    """`trueloop train`, by the highest resident memory that the system saw."""
    program = (
        "import sys, torch, polars\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from table_large import highest\n"
        "from trueloop.cli import main\n"
        "before = highest()\n"
        "status = main(sys.argv[1:])\n"
        "print(); print(before, highest()); sys.exit(status)\n"
    )
    arguments = ["train", "table", "--data", str(folder / "train.parquet"), "--target", "y"]
    arguments += ["--val-data", str(folder / "val.parquet"), "--test-share", "0"]
    arguments += ["--streaming", "always", "--updates", str(updates), "--batch-size", str(BATCH)]
    arguments += ["--threads", "1", "--quiet", "--run", str(folder / "run")]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    before, after = map(float, done.stdout.split()[-2:])
    return {"torch, polars and trueloop MB": before, "above MB": round(after - before, 1)}


def kills(folder: Path, count: int, seed: int) -> dict[str, Any]:
    """Runs on the file, killed at random moments until `count` kills have met them."""

    def setup() -> Setup:
        task, splits = opened(folder)
        return Setup(
            step=new_step(task, schedule=schedules.warmup_cosine()),
            train=Feed(splits.train, 64),
            val=Feed(splits.val, 1024),
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
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--batches", type=int, default=16_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where the file is made, and stays")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(options.folder, options.updates, options.batches)))
        return 0
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["TRUELOOP_CACHE"] = str(Path(temporary) / "cache")
        folder = options.folder or Path(temporary)
        make(folder, options.gigabytes)
        size = (folder / "train.parquet").stat().st_size
        common = ["--folder", str(folder), "--updates", str(options.updates)]
        cold = in_new_process("--case", "cold", *common, "--batches", "0")
        warm = in_new_process("--case", "warm", *common, "--batches", str(options.batches))
        trained = command(folder, options.updates)
        killed = kills(folder, options.kills, options.seed) if options.kills else {}
    print(table([{"run": "first", **cold}, {"run": "later", **warm}]))
    print(f"{size / 1e9:.2f} GB; trueloop train: {trained}; {killed}")
    met = (
        max(cold["together MB"], warm["together MB"], trained["above MB"]) <= GOAL["megabytes"]
        and warm["first batch, seconds"] <= GOAL["seconds"]
        and killed.get("equal") == killed.get("runs")
    )
    print(f"goal: {GOAL['seconds']} s, {GOAL['megabytes']:.0f} MB: {'met' if met else 'MISSED'}")
    results = {
        "goal": GOAL, "met": met, "bytes": size, "first run": cold, "later run": warm,
        "trueloop train": trained, "killed": killed,
    }  # fmt: skip
    print(save_results("table_large", results))
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
