"""What `trueloop watch` costs a training loop, side by side in turns in one process.

Small networks whose batches are as large as makes an update take 0.5 ms (10,000 updates, and 2,000
of them), 0.1 ms and 1.5 ms on this machine, and a transformer whose update takes 20 ms and more.
Each is trained for some seconds, unwatched and watched by turns; the ratios are medians of those of
neighbours. Reported apart: the updates that a watcher looks at whole (the first 50; their mean),
the first 500 (their mean), an update later on (the median of the second half), and all of the run
(its mean, with the updates that are looked at again), which is also given in microseconds that an
update takes longer. Times are those of the processor in the thread that trains, so that what else
the machine does is left out.

    python benchmarks/watch_cost.py [--rounds N] [--only LOOP] [--memory]

`--memory` trains a tiny network for 10^6 updates under one watcher and reports how memory grows.
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from common import save_results, table
from torch import nn

from trueloop.doctor.live.sampling_schedule import FIRST
from trueloop.doctor.live.watcher import Watcher

Update = Callable[[], None]
EARLY = 500


def small(batch: int, width: int = 96) -> Update:
    """64 -> width -> width -> 10, Adam."""
    model = nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    inputs, targets = torch.randn(batch, 64), torch.randint(0, 10, (batch,))

    def update() -> None:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()

    return update


def tiny(batch: int = 8) -> Update:
    """16 -> 1, SGD."""
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    inputs, targets = torch.randn(batch, 16), torch.randn(batch, 1)

    def update() -> None:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()

    return update


def of_size(make: Callable[[int], Update], milliseconds: float) -> Callable[[], Update]:
    """A loop with the batch size that makes its update take so long, by bisection."""
    low, high = 1, 65_536
    while high > low * 1.02 + 1:
        middle = round((low * high) ** 0.5)
        update = make(middle)
        times(update, 20)
        if times(update, 120)[2] < milliseconds / 1e3:
            low = middle
        else:
            high = middle
    return partial(make, low)


def large() -> Update:
    """20 ms and more: a transformer encoder of 4 layers, width 128, 8 sequences of 64."""
    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 4), nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    inputs, targets = torch.randn(8, 64, 128), torch.randint(0, 10, (8 * 64,))

    def update() -> None:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets)
        loss.backward()
        optimizer.step()

    return update


def times(update: Update, count: int) -> tuple[float, float, float, float]:
    """Seconds per update of one loop: mean of those looked at whole, mean of the first 500, median
    of the second half, mean of all."""
    took = []
    for _ in range(count):
        begin = time.thread_time()
        update()
        took.append(time.thread_time() - begin)
    return (
        statistics.fmean(took[:FIRST]),
        statistics.fmean(took[:EARLY]),
        statistics.median(took[count // 2 :]),
        sum(took) / count,
    )


def compare(make: Callable[[], Update], count: int, rounds: int) -> dict[str, float]:
    """Times per update in milliseconds, and ratios."""
    torch.manual_seed(0)
    update = make()
    times(update, max(count // 10, 2 * FIRST))
    bare, watched = [], []
    for _ in range(rounds):
        bare.append(times(update, count))
        watcher = Watcher()
        watcher.start()
        watched.append(times(update, count))
        watcher.stop()
        watcher.findings()
    longer = statistics.median(b[3] - a[3] for a, b in zip(bare, watched, strict=True))
    result: dict[str, float] = {
        "updates": count,
        "bare_ms": statistics.median(each[3] for each in bare) * 1e3,
    }
    for place, name in enumerate(("first", "first_500", "later", "whole")):
        result[f"{name}_ms"] = statistics.median(each[place] for each in watched) * 1e3
        result[f"{name}_ratio"] = statistics.median(
            b[place] / a[place] for a, b in zip(bare, watched, strict=True)
        )
    return result | {"longer_us": longer * 1e6}


def resident() -> float:
    """Megabytes of memory in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def memory(updates: int) -> dict[str, float]:
    """Memory after a tenth and after all of the updates of a tiny network."""
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs, targets = torch.randn(8, 4), torch.randn(8, 1)
    watcher = Watcher()
    watcher.start()
    for done in range(updates):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
        if done == updates // 10:
            gc.collect()
            early = resident()
    gc.collect()
    late = resident()
    watcher.stop()
    return {"updates": updates, "after_a_tenth_mb": early, "at_the_end_mb": late}


half = partial(of_size, small, 0.5)
LOOPS: dict[str, tuple[Callable[[], Callable[[], Update]], int]] = {
    "0.5 ms": (half, 10_000),
    "0.5 ms, a short run": (half, 2_000),
    "0.1 ms": (partial(of_size, tiny, 0.1), 10_000),
    "1.5 ms": (partial(of_size, partial(small, width=256), 1.5), 5_000),
    "20 ms and more": (lambda: large, 200),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=LOOPS, help="one of the loops; nothing is saved")
    parser.add_argument("--memory", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, dict[str, float]] = {
        name: compare(make(), count, given.rounds)
        for name, (make, count) in LOOPS.items()
        if given.only in (None, name)
    }
    rows = [
        {"loop": name} | {key: f"{value:.3f}" for key, value in found.items()}
        for name, found in results.items()
    ]
    print(table(rows))
    if given.memory:
        results["memory"] = memory(1_000_000)
        print(results["memory"])
    if given.only is None:
        save_results("watch_cost", results)


if __name__ == "__main__":
    main()
