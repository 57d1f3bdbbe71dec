"""Loops timed in turns on a device that computes beside the host."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

Update = Callable[[], object]
WAYS: dict[str, dict[str, Any]] = {
    "trueloop": {},
    "trueloop, compile=True": {"compile": True},
    "trueloop, compile=step": {"compile": "step"},
}
"""Options of a `Step` by the contender's name. On CUDA the last one replays CUDA graphs."""


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_each(
    updates: Mapping[str, Update], device: torch.device, *, count: int, rounds: int, warm: int
) -> dict[str, list[float]]:
    """Seconds per update of each loop, one value for each round; all have their turn in each."""
    found: dict[str, list[float]] = {name: [] for name in updates}
    for name, update in updates.items():
        started = time.perf_counter()
        for _ in range(warm):
            update()
        synchronise(device)
        taken = time.perf_counter() - started
        print(f"  {name}: {warm} updates to warm up, {taken:.1f} s", file=sys.stderr, flush=True)
    for _ in range(rounds):
        for name, update in updates.items():
            synchronise(device)
            started = time.perf_counter()
            for _ in range(count):
                update()
            synchronise(device)
            found[name].append((time.perf_counter() - started) / count)
    return found


def median_ratio(found: Mapping[str, list[float]], over: str, under: str) -> float:
    """The median of the rounds' own ratios."""
    return statistics.median(a / b for a, b in zip(found[over], found[under], strict=True))


def endless(feed: Any) -> Iterator[Any]:
    epoch = 0
    while True:
        yield from feed.epoch(epoch)
        epoch += 1


def stepping(step: Any, feed: Any) -> Update:
    batches = endless(feed)
    return lambda: step(next(batches))
