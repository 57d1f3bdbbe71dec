"""What Python's automatic garbage collection costs a training: the pauses that it makes, counted.

    python benchmarks/gc_pauses.py [--out FILE]

A run of `fit` with the spiral's network, beside nothing and beside a million Python lists that live
as long as the run. `gc.callbacks` times each collection. In turns: collection as Python does it;
`gc.freeze()` before the run, which takes what is there out of its sight; and no automatic
collection at all. The share of the pauses in the time of the run is what an option could save.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import nn

import trueloop

UPDATES, ROUNDS, OBJECTS = 1500, 5, 1_000_000
HERE = Path(__file__).parent


class Pauses:
    """The seconds of each collection, by generation."""

    def __init__(self) -> None:
        self.seconds: dict[int, list[float]] = {0: [], 1: [], 2: []}
        self._began = 0.0

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self.seconds[info["generation"]].append(time.perf_counter() - self._began)

    def __enter__(self) -> Pauses:
        gc.callbacks.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        gc.callbacks.remove(self)


def train() -> float:
    """Train; the seconds that it took."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 3)
    )
    optimizer = trueloop.optimizers.adamw(model, lr=1e-3)
    step = trueloop.Step(
        model, optimizer, trueloop.supervised(nn.CrossEntropyLoss()), clip_norm=1.0
    )
    data = torch.randn(6400, 2), torch.randint(0, 3, (6400,))
    feed = trueloop.Feed(data, 64, shuffle=True)
    began = time.perf_counter()
    trueloop.fit(step, feed, updates=UPDATES, progress=False)
    return time.perf_counter() - began


def measure(way: str) -> dict[str, Any]:
    """One run, its pauses, and their share of it."""
    gc.collect()
    if way == "frozen":
        gc.freeze()
    elif way == "off":
        gc.disable()
    try:
        with Pauses() as pauses:
            seconds = train()
    finally:
        gc.enable()
        gc.unfreeze()
    every = [pause for some in pauses.seconds.values() for pause in some]
    return {
        "seconds": seconds,
        "share": sum(every) / seconds,
        "longest": max(every, default=0.0),
        "collections": [len(some) for some in pauses.seconds.values()],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "gc_pauses.json")
    given = parser.parse_args()
    torch.set_num_threads(1)
    train()
    results: dict[str, Any] = {}
    kept: list[list[float]] = []
    for beside in (0, OBJECTS):
        kept = [[float(k), 0.0] for k in range(beside)]
        found: dict[str, list[dict[str, Any]]] = {way: [] for way in ("automatic", "frozen", "off")}
        for _ in range(ROUNDS):
            for way, runs in found.items():
                runs.append(measure(way))
        began = time.perf_counter()
        gc.collect()
        full = 1e3 * (time.perf_counter() - began)
        results[f"{beside} objects"] = {"full_collection_ms": full} | {
            way: {
                "microseconds_per_update": 1e6
                * statistics.median(r["seconds"] for r in runs)
                / UPDATES,
                "share_of_pauses": statistics.median(r["share"] for r in runs),
                "longest_pause_ms": 1e3 * statistics.median(r["longest"] for r in runs),
                "collections_by_generation": runs[-1]["collections"],
            }
            for way, runs in found.items()
        }
    del kept
    machine = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "updates": UPDATES,
        "rounds": ROUNDS,
    }
    text = json.dumps({**machine, **results}, indent=2)
    print(text)
    given.out.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
