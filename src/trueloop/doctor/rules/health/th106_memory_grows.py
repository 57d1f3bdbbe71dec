"""Memory grows with every update, and a container that nothing reads holds it.

## What it does

Finds a list, a dict or another container of the program that tensors or arrays are added to update
after update, that holds most of what memory has grown by, and of which the program reads no more
than the newest element.

## Why it breaks training

What is kept is never used, and never let go of: activations that a hook collects to look at them,
gradients that are written down, a table by the number of the step. The weights are right as long
as it runs. One would see memory rise from update to update, until after hours the device has none
left or the system ends the process.

## Wrong

```python
activations = []
model.encoder.register_forward_hook(lambda *call: activations.append(call[2].detach()))
for inputs, targets in loader:
    train_step(inputs, targets)
    writer.add_histogram("encoder", activations[-1])
```

## Right

```python
activations = collections.deque(maxlen=1)
```

## Sources

- PyTorch, [Frequently asked questions: my model reports "cuda runtime error(2): out of
  memory"](https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory)
- PyTorch, [Understanding CUDA memory
  usage](https://docs.pytorch.org/docs/stable/torch_cuda_memory.html)
- Python, [collections.deque](https://docs.python.org/3/library/collections.html#collections.deque)

## How it is detected

While the program runs: the memory of the process (and what tensors take of the device) is asked
for in turns that are looked at. It must have grown by 64 MiB and a tenth of what it was after the
first updates, and in each of at least five stretches at about the same pace. Then the containers
that the program's variables and modules lead to are measured, and again when memory has grown on:
one that holds at least half of the growth at both times is named, if nothing in the program's
files reads more of it than its newest element. Caches that fill up, buffers that are sampled from,
data sets that grow, and what is collected to be used later are read, and silent. So are containers
with a bound, and growth that no container explains. Tensors that are kept with their graphs are
TL204's to tell.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Measured
from trueloop.doctor.model.findings import Location
from trueloop.doctor.rules.base import Rule

_MIB = 2**20


class MemoryGrows(Rule):
    code = "TH106"

    def __init__(self) -> None:
        super().__init__()
        self.told: set[str] = set()
        """What holds tensors with their graphs, as TL204 has said."""

    def on_measured(self, event: Measured) -> None:
        values = event.values
        if event.what == "kept":
            self.told.add(values["holder"])
        if event.what != "memory grows" or values["holder"] in self.told:
            return
        place: Location = values["place"]
        pace = values["grown"] / (values["update"] - values["since"])
        whose = "The process's memory" if values["on"] == "the process" else "The device's memory"
        share = min(1.0, values["held"] / values["grown"])
        self.report(
            place,
            f"{whose} grows by {_size(pace)} per update, by {_size(values['grown'])} from"
            f" update {values['since']:,} to {values['update']:,}. `{values['holder']}`"
            f" ({values['kind']}) holds {values['count']:,} tensors or arrays,"
            f" {_size(values['held'])} ({share:.0%} of the growth), and nothing reads any"
            " but the newest.",
            fix="Store numbers instead of tensors, keep only the newest, or limit the length:"
            " `collections.deque(maxlen=...)`.",
        )


def _size(count: float) -> str:
    whole = count / _MIB
    return f"{whole:,.0f} MiB" if whole >= 10 else f"{whole:.2g} MiB"
