"""What watching costs in two states of this package, in turns in one process.

Both states are copied under names of their own and imported side by side. They watch the same small
network by turns (an update takes about 0.5 ms with one thread), so that both meet the same load,
memory and caches. Times are those of the processor in the thread that trains. Reported are the
least time of a turn (an update of the first 50, which are all sampled; one between samples, by the
lower quartile; the mean of all) and, for an update between samples, the median over the turns of
what it takes longer than the unwatched one of the same turn.

    python benchmarks/watch_turns.py OTHER/src [--turns N] [--updates N]
"""

from __future__ import annotations

import argparse
import gc
import importlib
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from common import table
from torch import nn

OURS = Path(__file__).resolve().parents[1] / "src"
FIRST, BETWEEN = 50, 520
"""Updates that are sampled from the beginning; from here to 740 none is."""
COLUMNS = ("sampled", "between", "all")


def watch_of(source: Path, name: str, folder: Path) -> Callable[..., AbstractContextManager[Any]]:
    """`trueloop.watch` of the package in `source`, imported as `name`."""
    shutil.copytree(source / "trueloop", folder / name)
    for file in (folder / name).rglob("*.py"):
        text = file.read_text("utf-8")
        file.write_text(re.sub(r"\btrueloop\b", name, text), encoding="utf-8")
    found: Callable[..., AbstractContextManager[Any]] = importlib.import_module(name).watch
    return found


def turn(watch: AbstractContextManager[Any], count: int) -> tuple[float, float, float]:
    """Microseconds of an update of the first ones, of one between samples, and of all."""
    took = []
    with watch:
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10)
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
        inputs, targets = torch.randn(176, 64), torch.randint(0, 10, (176,))
        for _ in range(count):
            begin = time.thread_time()
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            took.append(1e6 * (time.thread_time() - begin))
    gc.collect()
    between = statistics.quantiles(took[BETWEEN:740], n=4)[0]
    return statistics.fmean(took[:FIRST]), between, statistics.fmean(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the src folder of the other state")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--updates", type=int, default=2000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        sys.path.insert(0, name)
        states: dict[str, Callable[..., AbstractContextManager[Any]]] = {
            "not watched": lambda **_: nullcontext(),
            "other": watch_of(given.other, "other_state", Path(name)),
            "this": watch_of(OURS, "this_state", Path(name)),
        }
        turn(nullcontext(), 760)
        found: dict[str, list[tuple[float, float, float]]] = {state: [] for state in states}
        for number in range(given.turns):
            for state in sorted(states, reverse=bool(number % 2)):
                found[state].append(turn(states[state](show=False), given.updates))
    bare = found["not watched"]
    rows = []
    for state, turns in found.items():
        least = [min(column) for column in zip(*turns, strict=True)]
        longer = statistics.median(a[1] - b[1] for a, b in zip(turns, bare, strict=True))
        row = {f"{name}_us": f"{time:.1f}" for name, time in zip(COLUMNS, least, strict=True)}
        rows.append({"state": state} | row | {"between_longer_us": f"{longer:+.1f}"})
    print(table(rows))


if __name__ == "__main__":
    main()
