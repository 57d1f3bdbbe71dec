"""Batches are copied to the GPU while everything waits; the copy could run in parallel.

## What it does

Finds batches that are moved with `non_blocking=True` from ordinary memory, or from pinned memory
without it, if the copy takes 5% or more of an update's time.

## Why it breaks training

Nothing is wrong, but training is slow. A copy runs in parallel only from pinned memory and with
`non_blocking=True`. With only one of the two, `non_blocking=True` has no effect, or
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

In a program on a GPU: whether the source of `.to(...)` or `.cuda(...)` is in pinned memory, whether
the call is non-blocking, and how long it keeps the program and the GPU from other work, in at least
nine of ten updates. Not reported: a plain copy from ordinary memory.
"""

from __future__ import annotations

from trueloop.doctor.model.speed_measurements import DeviceTransfer
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.timings import counts, duration, percent

SHARE = 0.05
OFTEN = 0.9
"""Of the updates."""


class TransferNotOverlapped(Rule):
    code = "TS103"

    def on_device_transfer(self, event: DeviceTransfer) -> None:
        if not counts(event.updates) or event.updates.device == "cpu":
            return
        if event.share < SHARE or event.often < OFTEN:
            return
        if event.non_blocking == event.pinned:
            return
        takes = f"takes {duration(event.each)}, {percent(event.share)} of each update"
        if event.non_blocking:
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
                fix=f"Use .{event.how}(..., non_blocking=True).",
            )
