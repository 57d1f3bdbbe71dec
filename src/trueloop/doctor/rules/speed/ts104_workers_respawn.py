"""A loader's workers are started anew for every epoch, and that takes a share of it.

## What it does

Finds loaders whose workers are started and stopped with every pass over the data, where that takes
a tenth or more of the whole time from pass to pass.

## Why it breaks training

It does not: it is slow. Starting a process, importing what it needs and handing it the data set
takes from some hundredths of a second to several seconds, and before the first batch is there
nothing is trained. Short epochs spend much of their time on it.

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

While the program runs, over three passes or more besides the first one: how long it takes to make
the iterator and to stop its workers, and how much longer the first batch is waited for than a
worker can take to prepare one (as many turns of the loop as there are workers). Where attributes of
the data set change between passes (a crop size, an epoch number), workers that live on would not
see it: there it is silent.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Measured
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called
from trueloop.doctor.rules.shared.timings import duration, percent

SHARE = 0.1
PASSES = 3
_LEAST = 0.01
"""Seconds, each time."""


class WorkersRespawn(Rule):
    code = "TS104"

    def on_measured(self, event: Measured) -> None:
        values = event.values
        if event.what != "starts of workers" or values["lasted"] < values["least"]:
            return
        if values["passes"] < PASSES or values["changes"]:
            return
        if values["share"] < SHARE or values["each"] < _LEAST:
            return
        workers = event.subject.workers
        one = workers == 1
        self.report(
            event.place,
            f"{called(event.subject, 'This loader')} starts its"
            f" {'worker' if one else 'workers'} again in every epoch, which takes"
            f" {duration(values['each'])}: {percent(values['share'])} of the time.",
            fix="Pass persistent_workers=True.",
        )
