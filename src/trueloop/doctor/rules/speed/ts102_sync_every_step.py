"""The program asks for a number of the GPU in every step, and the GPU runs dry meanwhile.

## What it does

Finds lines that read a tensor of the GPU (`.item()`, `.cpu()`, `float(loss)`, `print(loss)`) in
every update, where that makes it stand still for a tenth or more of the time.

## Why it breaks training

It does not: it is slow. A GPU works through a queue. Whoever asks for a number waits until the
queue is empty; only then is the next work put into it, and until then the GPU has none.

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

While the program runs on a GPU: how long a line that reads a tensor waits, and for how long the GPU
stands still in the update (between what was computed last and what is begun next, by its own
clock). The lesser of the two is what can be gained, summed up over the update; on the CPU nothing
is, and it is silent, as it is where the line is left out in some updates (every hundredth step).
"""

from __future__ import annotations

from trueloop.doctor.model.events import Measured
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

    def on_measured(self, event: Measured) -> None:
        values = event.values
        if event.what != "read of the device" or not counts(values):
            return
        if values["device"] == "cpu" or values["often"] < OFTEN or values["share"] < SHARE:
            return
        how = _WORDS.get(values["how"], f".{values['how']}()")
        self.report(
            event.place,
            f"In every update {how} waits {duration(values['blocked'])} for the GPU, which"
            f" is then idle until it gets new work: about {percent(values['share'])} of"
            " the time could be saved.",
            fix="Keep the value as a tensor (`.detach()`), and read it only every N updates.",
        )
