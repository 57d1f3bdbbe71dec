"""Memory grows with every update, in a container that nothing reads.

## What it does

Finds a list, dict or other container that gets tensors or arrays update after update, makes up most
of the memory growth, and of which the program reads only the newest element.

## Why it breaks training

The stored values are never used and never freed: activations that a hook collects, stored
gradients, a table by step number. The weights are right as long as the program runs. Memory grows
until, after hours, the device has none left or the system kills the process.

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

In a running program: the memory of the process (and of tensors on the device) is measured in
sampled iterations. It must have grown by 64 MiB and a tenth of its size after the first updates, at
about the same rate in each of at least five intervals. Then the containers that the program's
variables and modules reach are measured, and again later: one that makes up at least half of the
growth both times is reported if nothing in the program's files reads more than its newest element.
Not reported: caches that fill up, replay buffers, growing data sets, values that are used later,
bounded containers, growth without such a container, and tensors stored with their graphs (TL204).
"""

from __future__ import annotations

from trueloop.doctor.model.measurements import GraphsRetained, MemoryGrowth
from trueloop.doctor.rules.base import Rule

_MIB = 2**20


class MemoryGrows(Rule):
    code = "TH106"

    def __init__(self) -> None:
        super().__init__()
        self.reported: set[str] = set()
        """The containers of tensors with graphs that TL204 has reported."""

    def on_graphs_retained(self, event: GraphsRetained) -> None:
        self.reported.add(event.holder)

    def on_memory_growth(self, event: MemoryGrowth) -> None:
        if event.holder in self.reported:
            return
        pace = event.grown / (event.update - event.since)
        whose = "The process's memory" if not event.on_device else "The device's memory"
        share = min(1.0, event.held / event.grown)
        self.report(
            event.place,
            f"{whose} grows by {_size(pace)} per update, by {_size(event.grown)} from"
            f" update {event.since:,} to {event.update:,}. `{event.holder}`"
            f" ({event.kind}) has {event.count:,} tensors or arrays,"
            f" {_size(event.held)} ({share:.0%} of the growth), and nothing reads any"
            " but the newest.",
            fix="Store numbers instead of tensors, keep only the newest, or limit the length:"
            " `collections.deque(maxlen=...)`.",
        )


def _size(count: float) -> str:
    whole = count / _MIB
    return f"{whole:,.0f} MiB" if whole >= 10 else f"{whole:.2g} MiB"
