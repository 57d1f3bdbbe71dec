"""What `trueloop watch` costs a training loop, side by side in turns in one process.

Two loops: a small network whose update takes about half a millisecond, and a transformer whose
update takes 20 ms and more. Each is trained in blocks, unwatched and watched by turns; the ratio
is that of the medians over the blocks. Reported apart: the updates that a watcher looks at whole
(the first ones), and those after them.

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
from pathlib import Path

import torch
from common import save_results, table
from torch import nn

from trueloop.doctor.runtime.watcher import FIRST, Watcher

Update = Callable[[], None]


def small() -> Update:
    """About 0.5 ms: 64 -> 256 -> 256 -> 10, batches of 128, Adam."""
    model = nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    inputs, targets = torch.randn(128, 64), torch.randint(0, 10, (128,))

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


def block(update: Update, count: int) -> float:
    """Seconds per update."""
    begin = time.perf_counter()
    for _ in range(count):
        update()
    return (time.perf_counter() - begin) / count


def compare(make: Callable[[], Update], count: int, rounds: int) -> dict[str, float]:
    """Times per update in milliseconds, and ratios."""
    torch.manual_seed(0)
    update = make()
    block(update, count)
    bare, first, later, whole = [], [], [], []
    for _ in range(rounds):
        bare.append(block(update, count))
        watcher = Watcher()
        watcher.start()
        # Updates are looked at by turns of the loop that they stand in, so each has its own call.
        looked = block(update, FIRST + 10)
        block(update, FIRST)
        seconds = block(update, count)
        watcher.stop()
        watcher.findings()
        first.append(looked)
        later.append(seconds)
        whole.append((looked * FIRST + seconds * (5000 - FIRST)) / 5000)
    base = statistics.median(bare)
    return {
        "bare_ms": base * 1e3,
        "first_ms": statistics.median(first) * 1e3,
        "later_ms": statistics.median(later) * 1e3,
        "later_ratio": statistics.median(b / a for a, b in zip(bare, later, strict=True)),
        "of_5000_ratio": statistics.median(b / a for a, b in zip(bare, whole, strict=True)),
    }


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
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--memory", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, dict[str, float]] = {
        "small": compare(small, 400, given.rounds),
        "large": compare(large, 20, given.rounds),
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
