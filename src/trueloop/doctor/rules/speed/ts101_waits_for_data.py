"""Training waits for data: the next batch is not ready.

## What it does

Finds loaders that the program waits for during 20% or more of an update's time, and reports how
many workers would be enough.

## Why it breaks training

Nothing is wrong, but training is slow. Without workers, a `DataLoader` reads and prepares each
batch while the model waits; with too few workers, the model uses batches faster than they arrive.
Workers prepare the next batches during training.

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

In a running program: the time from asking a loader for a batch to having it, over at least twenty
updates (on a GPU: the time that the GPU is idle for it), without the first batches of an epoch.
Without workers, that is the time to prepare a batch; with N workers, preparing a batch takes N
times the time of an iteration. The number of workers follows from the two times. If batches are
computed rather than waited for (disk, network), there cannot be more workers than cores, and one
core less if training runs on the CPU. Not reported: that many workers already run, the program
itself is busy receiving batches, and trainings of a few seconds.
"""

from __future__ import annotations

import math

from trueloop.doctor.model.speed_measurements import DataWait
from trueloop.doctor.model.things import Loader
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called
from trueloop.doctor.rules.shared.timings import counts, duration, percent

SHARE = 0.2
BUSY = 0.5
"""Share of the time that a batch is computed, from which on it needs a separate processor."""
_MANY = 16
"""Workers that any machine can bear, as long as they only wait."""
_LEAST = 1e-3
"""Seconds that a batch must cost for a process to be worth its keep."""


class WaitsForData(Rule):
    code = "TS101"

    def on_data_wait(self, event: DataWait) -> None:
        if not counts(event.updates):
            return
        loader = event.loader
        if event.share < SHARE or loader.one_by_one:
            return
        has = loader.workers if isinstance(loader.workers, int) else 0
        cost = _cost(event, has)
        if cost < _LEAST:
            return
        needed = max(math.ceil(cost / max(event.rest, 1e-4)), has + 1)
        most = _most(event, has)
        if most <= has:
            return
        name = called(loader, "the loader")
        whose = f"with {has} worker{'s' * (has > 1)}" if has else "without workers"
        end = (
            f"{needed} workers would be enough."
            if needed <= most
            else (
                f"{most} worker{'s' * (most > 1)} would reduce that to"
                f" {percent(_share_left(cost, event.rest, most))}."
            )
        )
        if needed == 1:
            end = "1 worker would be enough."
        self.report(
            event.place,
            f"{percent(event.share)} of each update is spent waiting for {name},"
            f" {whose}: a batch takes {duration(cost)} to prepare, and the training uses"
            f" it up in {duration(event.rest)}. {end}",
            fix=_fix(loader, min(needed, most)),
        )


def _cost(event: DataWait, workers: int) -> float:
    """Seconds that it takes to prepare one batch."""
    return workers * (event.batch + event.rest) if workers else event.batch


def _most(event: DataWait, workers: int) -> int:
    """Workers that can run beside the training."""
    if workers and event.busy >= BUSY:
        return 0  # it is the program itself that is busy receiving batches
    cores = event.cores
    if (event.workers_busy if workers else event.busy) < BUSY:
        return max(cores, _MANY)  # they wait for something else than a processor
    return cores if event.updates.device != "cpu" else cores - 1


def _share_left(cost: float, rest: float, workers: int) -> float:
    waits = max(0.0, cost / workers - rest)
    return waits / (waits + rest)


def _fix(loader: Loader, workers: int) -> str:
    text = f"Pass num_workers={workers}"
    if not loader.workers:
        text += ", persistent_workers=True"
    if loader.length is None or loader.iterable:
        text += ", and let each worker read its own share of the stream (get_worker_info)"
    return f"{text}."
