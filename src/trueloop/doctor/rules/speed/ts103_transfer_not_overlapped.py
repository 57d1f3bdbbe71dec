"""Batches are copied to the GPU while everything waits, though the copy could run beside the rest.

## What it does

Finds batches that are moved with `non_blocking=True` out of ordinary memory, or out of pinned
memory without it, where the copy takes a twentieth or more of an update's time.

## Why it breaks training

It does not: it is slow. A copy runs beside other work only out of pinned memory, and only if it is
asked to. With one of the two alone, `non_blocking=True` waits as if it were not there, or
`pin_memory=True` costs an additional copy and gains little.

## Wrong

```python
loader = DataLoader(images, batch_size=64, num_workers=4)
for inputs, targets in loader:
    inputs = inputs.to("cuda", non_blocking=True)
```

## Right

```python
loader = DataLoader(images, batch_size=64, num_workers=4, pin_memory=True)
for inputs, targets in loader:
    inputs = inputs.to("cuda", non_blocking=True)
```

## Sources

- PyTorch, [a guide on good usage of non_blocking and
  pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
- PyTorch, [use pinned memory
  buffers](https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers)

## How it is detected

While the program runs on a GPU: whether what `.to(...)` or `.cuda(...)` copies lies in pinned
memory, whether it was asked not to wait, and how long it keeps the program and the GPU from other
work, in nine of ten updates or more. A plain copy out of ordinary memory is nobody's oversight.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Measured
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.timings import counts, duration, percent

SHARE = 0.05
OFTEN = 0.9
"""Of the updates."""


class TransferNotOverlapped(Rule):
    code = "TS103"

    def on_measured(self, event: Measured) -> None:
        values = event.values
        if event.what != "transfer" or not counts(values) or values["device"] == "cpu":
            return
        if values["share"] < SHARE or values["often"] < OFTEN:
            return
        if values["non_blocking"] == values["pinned"]:
            return
        takes = f"takes {duration(values['each'])}, {percent(values['share'])} of each update"
        if values["non_blocking"]:
            self.report(
                event.place,
                "`non_blocking=True` has no effect here, because the batch is not in"
                f" pinned memory: the copy {takes}, and the GPU is idle meanwhile.",
                fix="Pass pin_memory=True to the loader.",
            )
        else:
            self.report(
                event.place,
                f"The batch is in pinned memory, but the copy is blocking: it {takes}.",
                fix=f"Use .{values['how']}(..., non_blocking=True).",
            )
