"""The training loop stands still for much of its time, because the next batch is not ready.

## What it does

Finds loaders that the program waits for during a fifth or more of an update's time, and says how
many workers would have the next batch ready in time.

## Why it breaks training

It does not: it is slow. Without workers, a `DataLoader` reads and prepares each batch while the
model has nothing to do; with too few of them, the model uses batches up faster than they arrive.
Workers prepare the next batches while the present one is trained on.

## Wrong

```python
loader = DataLoader(images, batch_size=64, shuffle=True)
```

## Right

```python
loader = DataLoader(images, batch_size=64, shuffle=True, num_workers=4, persistent_workers=True)
```

## Sources

- PyTorch, [multi-process data loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
- PyTorch, [performance tuning
  guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#enable-asynchronous-data-loading-and-augmentation)

## How it is detected

While the program runs: the time from asking a loader for a batch to having it, over at least twenty
updates (on a GPU: the time that the GPU stands still for it), without those in which a pass over
the data begins. Without workers that is what a batch costs; with them, a batch costs as many times
the loop's turn as there are workers. So many workers are needed as batches are used up while one is
prepared. Where a batch is computed rather than waited for (a disk, a network), there can be no more
of them than there are cores, besides the one that trains where that is done on the processor: if so
many run already, or if it is the program itself that is busy receiving batches, it is silent, as it
is about trainings of a few seconds.
"""

from __future__ import annotations

import math
from typing import Any

from trueloop.doctor.model.events import Measured
from trueloop.doctor.model.things import Loader
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called
from trueloop.doctor.rules.shared.timings import counts, duration, percent

SHARE = 0.2
BUSY = 0.5
"""Share of the time that a batch is computed, from which on it needs a processor of its own."""
_MANY = 16
"""Workers that any machine can bear, as long as they only wait."""
_LEAST = 1e-3
"""Seconds that a batch must cost for a process to be worth its keep."""


class WaitsForData(Rule):
    code = "TS101"

    def on_measured(self, event: Measured) -> None:
        if event.what != "waiting for data" or not counts(event.values):
            return
        loader, values = event.subject, event.values
        if values["share"] < SHARE or loader.facts.get("sample at a time"):
            return
        has = loader.workers or 0
        cost = _cost(values, has)
        if cost < _LEAST:
            return
        needed = max(math.ceil(cost / max(values["rest"], 1e-4)), has + 1)
        most = _most(values, has)
        if most <= has:
            return
        name = called(loader, "the loader")
        whose = f"with {has} worker{'s' * (has > 1)}" if has else "without workers"
        end = (
            f"{needed} workers would be enough."
            if needed <= most
            else (
                f"{most} worker{'s' * (most > 1)} would reduce that to"
                f" {percent(_share_left(cost, values['rest'], most))}."
            )
        )
        if needed == 1:
            end = "1 worker would be enough."
        self.report(
            event.place,
            f"{percent(values['share'])} of each update is spent waiting for {name},"
            f" {whose}: a batch takes {duration(cost)} to prepare, and the training uses"
            f" it up in {duration(values['rest'])}. {end}",
            fix=_fix(loader, min(needed, most)),
        )


def _cost(values: dict[str, Any], workers: int) -> float:
    """Seconds that it takes to prepare one batch."""
    batch: float = values["batch"]
    return workers * (batch + values["rest"]) if workers else batch


def _most(values: dict[str, Any], workers: int) -> int:
    """Workers that can run beside the training."""
    if workers and values["busy"] >= BUSY:
        return 0  # it is the program itself that is busy receiving batches
    cores: int = values["cores"]
    if values["workers_busy" if workers else "busy"] < BUSY:
        return max(cores, _MANY)  # they wait for something else than a processor
    return cores if values["device"] != "cpu" else cores - 1


def _share_left(cost: float, rest: float, workers: int) -> float:
    waits = max(0.0, cost / workers - rest)
    return waits / (waits + rest)


def _fix(loader: Loader, workers: int) -> str:
    text = f"Pass num_workers={workers}"
    if not loader.workers:
        text += ", persistent_workers=True"
    if loader.length is None or loader.facts.get("iterable"):
        text += ", and let each worker read its own share of the stream (get_worker_info)"
    return f"{text}."
