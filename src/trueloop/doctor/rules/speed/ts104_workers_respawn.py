"""A loader starts its workers again in every epoch, which takes a share of the time.

## What it does

Finds loaders whose workers are started and stopped in every epoch, if this takes 10% or more of the
time of an epoch.

## Why it breaks training

Nothing is wrong, but training is slow. Starting a process, importing its modules and passing the
data set takes from hundredths of a second to several seconds, and nothing is trained before the
first batch arrives. With short epochs this is a large share.

## Wrong

```python
loader = DataLoader(images, batch_size=64, num_workers=4)
```

## Right

```python
loader = DataLoader(images, batch_size=64, num_workers=4, persistent_workers=True)
```

## Sources

- PyTorch, [torch.utils.data.DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader):
  `persistent_workers`

## How it is detected

In a running program, over at least three epochs after the first one: the time to create the
iterator and to stop its workers, and how much longer the first batch takes than a worker needs to
prepare one. Not reported: data sets whose attributes change between epochs (a crop size, an epoch
number), because persistent workers would not see the change.
"""

from __future__ import annotations

from trueloop.doctor.model.speed_measurements import WorkerStarts
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called
from trueloop.doctor.rules.shared.timings import duration, percent

SHARE = 0.1
PASSES = 3
_LEAST = 0.01
"""Seconds, each time."""


class WorkersRespawn(Rule):
    code = "TS104"

    def on_worker_starts(self, event: WorkerStarts) -> None:
        if event.lasted < event.least:
            return
        if event.passes < PASSES or event.changes:
            return
        if event.share < SHARE or event.each < _LEAST:
            return
        workers = event.loader.workers
        one = workers == 1
        self.report(
            event.place,
            f"{called(event.loader, 'This loader')} starts its"
            f" {'worker' if one else 'workers'} again in every epoch, which takes"
            f" {duration(event.each)}: {percent(event.share)} of the time.",
            fix="Pass persistent_workers=True.",
        )
