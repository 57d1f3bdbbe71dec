"""What a checkpoint costs: how long it holds the loop up, until it is on disk, and in memory.

    python benchmarks/checkpoint_cost.py

1. 500 MB of state: `torch.save` to a file, and `Checkpoints.save` beside it, in turns: the time the
   loop is held up, the time until the checkpoint is durable and verified, and the rise of the
   process's memory. The goals: at most 15% of torch.save's time, at most one copy of the state.
2. The first save, each in a fresh process, whose memory nothing has touched: a second after the
   first update, when the memory of the copy is ready, as `fit` and `Checkpoints.keep` have it made
   ready; at once after it; and with nothing made ready.
3. A run of 100,000 updates of a tiny model with a checkpoint every 50: memory at a tenth of the way
   and at the end, and what lies in the folder.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from common import save_results, table
from torch import nn

import trueloop


def resident_mb() -> float:
    """Memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def state_of_500_mb() -> dict[str, Any]:
    return {"model": {f"w{k}": torch.randn(5_000_000) for k in range(25)}}


def large_state(rounds: int, folder: Path) -> dict[str, Any]:
    """Hold-up, time until durable and memory, for 500 MB of state."""
    state = state_of_500_mb()
    size = sum(t.nbytes for t in state["model"].values()) / 1e6
    before = resident_mb()
    saved = trueloop.Checkpoints(folder / "ours", keep_last=1)
    plain, held, durable, peak = [], [], [], 0.0
    for k in range(rounds):
        started = time.perf_counter()
        torch.save(state, folder / "plain.pt")
        plain.append(time.perf_counter() - started)
        started = time.perf_counter()
        saved.save(state, (0, k, k))
        held.append(time.perf_counter() - started)
        peak = max(peak, resident_mb())
        saved.wait()
        durable.append(time.perf_counter() - started)
        peak = max(peak, resident_mb())
    return {
        "state, MB": round(size),
        "torch.save, s": round(statistics.median(plain), 3),
        "a save holds up, s": round(statistics.median(held[1:]), 3),
        "hold-up / torch.save": round(statistics.median(held[1:]) / statistics.median(plain), 3),
        "until durable and verified, s": round(statistics.median(durable), 3),
        "memory rises by, copies": round((peak - before) / size, 2),
    }


def first_save(seconds: float | None, folder: Path) -> tuple[float, float, float]:
    """Seconds that the first save holds up the loop, so long after the memory for it was asked for
    (None: never), copies of the state by which memory rises, and seconds of a `torch.save`."""
    state = state_of_500_mb()
    size = sum(t.nbytes for t in state["model"].values()) / 1e6
    weight = torch.randn(256, 256)
    before = resident_mb()
    saved = trueloop.Checkpoints(folder / "first")
    if seconds is not None:
        saved.prepare(lambda: state)
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            weight @ weight  # the training goes on
    started = time.perf_counter()
    saved.save(state, (0, 0, 0))
    held = time.perf_counter() - started
    saved.wait()
    rise = (resident_mb() - before) / size
    started = time.perf_counter()
    torch.save(state, folder / "first.pt")
    plain = time.perf_counter() - started
    shutil.rmtree(folder / "first")
    return held, rise, plain


def first_saves(rounds: int, folder: Path) -> list[dict[str, Any]]:
    """The first save of a run, by what came before it."""
    ways = {"a second of training": 1.0, "just asked for": 0.0, "not asked for": None}
    rows = []
    for way, seconds in ways.items():
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as fresh:
            seen = fresh.starmap(first_save, [(seconds, folder)] * rounds, chunksize=1)
        held, rise, plain = (statistics.median(column) for column in zip(*seen, strict=True))
        rows.append({
            "memory": way,
            "first save holds up, s": round(held, 3),
            "hold-up / torch.save": round(held / plain, 3),
            "memory rises by, copies": round(rise, 2),
        })  # fmt: skip
    return rows


def long_run(updates: int, folder: Path) -> dict[str, Any]:
    """Memory and the folder over a long run with a checkpoint every 50 updates."""
    torch.manual_seed(0)
    x, y = torch.randn(1000, 4), torch.randn(1000, 1)
    model = nn.Linear(4, 1)
    step = trueloop.Step(
        model, trueloop.optimizers.adam(model, 1e-3), trueloop.supervised(nn.MSELoss())
    )
    train = trueloop.Feed((x, y), 10, shuffle=True)
    memory: list[float] = []

    def watch(record: Any) -> None:
        if getattr(record, "updated", False) and record.update % (updates // 10) == 0:
            memory.append(resident_mb())

    started = time.perf_counter()
    trueloop.fit(
        step,
        train,
        epochs=updates // 100,
        checkpoints=trueloop.Checkpoints(folder / "long", keep_best=None, every="50 updates"),
        sinks=[watch],
        progress=False,
    )
    return {
        "updates": step.updates,
        "checkpoints": step.updates // 50,
        "seconds": round(time.perf_counter() - started, 1),
        "memory after a tenth, MB": round(memory[0]),
        "memory at the end, MB": round(memory[-1]),
        "folders left": sum(entry.is_dir() for entry in (folder / "long").iterdir()),
        "bytes left": sum(f.stat().st_size for f in (folder / "long").rglob("*") if f.is_file()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="on the disk to measure (default: here)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder or Path.cwd(), prefix="checkpoint-cost-"))
    try:
        large = large_state(options.rounds, folder)
        print(table([large]))
        first = first_saves(options.rounds, folder)
        print(table(first))
        long = long_run(options.updates, folder)
        print(table([long]))
    finally:
        shutil.rmtree(folder)
    save_results("checkpoint_cost", {"large state": large, "first save": first, "long run": long})


if __name__ == "__main__":
    main()
