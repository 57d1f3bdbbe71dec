"""What `trueloop watch` costs a training loop, side by side in turns in one process.

Three loops: two small networks whose updates take about half a millisecond and thrice that, and a
transformer whose update takes 20 ms and more. Each is trained for some seconds, unwatched and
watched by turns; the ratios are medians of those of neighbours. Reported apart: the updates that a
watcher looks at whole (the first 50; their mean), the first 500 (their mean), an update later on
(the median of the second half), and all of the run (its mean, with the updates that are looked at
again and the machine's own jumps).

    python benchmarks/watch_cost.py [--rounds N] [--memory]

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

from trueloop.doctor.runtime.watcher import FIRST, Watcher

Update = Callable[[], None]
EARLY = 500


def small(width: int = 96, batch: int = 64) -> Update:
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
        begin = time.perf_counter()
        update()
        took.append(time.perf_counter() - begin)
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
    result: dict[str, float] = {
        "updates": count,
        "bare_ms": statistics.median(each[3] for each in bare) * 1e3,
    }
    for place, name in enumerate(("first", "first_500", "later", "whole")):
        result[f"{name}_ms"] = statistics.median(each[place] for each in watched) * 1e3
        result[f"{name}_ratio"] = statistics.median(
            b[place] / a[place] for a, b in zip(bare, watched, strict=True)
        )
    return result


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--memory", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, dict[str, float]] = {
        "small": compare(small, 10_000, given.rounds),
        "middle": compare(partial(small, 256, 128), 5000, given.rounds),
        "large": compare(large, 200, given.rounds),
    }
    rows = [
        {"loop": name} | {key: f"{value:.3f}" for key, value in found.items()}
        for name, found in results.items()
    ]
    print(table(rows))
    if given.memory:
        results["memory"] = memory(1_000_000)
        print(results["memory"])
    save_results("watch_cost", results)


if __name__ == "__main__":
    main()
