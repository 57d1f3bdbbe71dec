"""The program reads a value from the GPU in every step, and the GPU becomes idle.

## What it does

Finds lines that read a tensor of the GPU (`.item()`, `.cpu()`, `float(loss)`, `print(loss)`) in
every update, if this leaves the GPU idle for 10% or more of the time.

## Why it breaks training

Nothing is wrong, but training is slow. A GPU works through a queue. Reading a value waits until the
queue is empty; only then does the program add new work, and until then the GPU is idle.

## Wrong

```python
for images, labels in loader:
    loss = train_on(images, labels)
    total += loss.item()
```

## Right

```python
for images, labels in loader:
    loss = train_on(images, labels)
    total += loss.detach()  # on the GPU; read it once an epoch
```

## Sources

- PyTorch, [performance tuning
  guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization)
- PyTorch, [asynchronous
  execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)

## How it is detected

In a program on a GPU: how long a line that reads a tensor waits, and how long the GPU is idle in
the update (between the last operation before and the first after, by the GPU's clock). The smaller
of the two can be saved, summed over the update. Not reported: programs on the CPU, and lines that
some updates skip (every hundredth step).
"""

from __future__ import annotations

from trueloop.doctor.model.speed_measurements import DeviceRead
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.timings import counts, duration, percent

SHARE = 0.1
OFTEN = 0.9
"""Of the updates."""
_WORDS = {
    "__float__": "float(...)", "__int__": "int(...)", "__bool__": "a condition on a tensor",
    "__repr__": "printing a tensor", "__format__": "printing a tensor",
}  # fmt: skip


class SyncEveryStep(Rule):
    code = "TS102"

    def on_device_read(self, event: DeviceRead) -> None:
        if not counts(event.updates):
            return
        if event.updates.device == "cpu" or event.often < OFTEN or event.share < SHARE:
            return
        how = _WORDS.get(event.how, f".{event.how}()")
        self.report(
            event.place,
            f"In every update {how} waits {duration(event.blocked)} for the GPU, which"
            f" is then idle until it gets new work: about {percent(event.share)} of"
            " the time could be saved.",
            fix="Keep the value as a tensor (`.detach()`), and read it only every N updates.",
        )
