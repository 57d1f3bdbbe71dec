"""Activation checkpointing draws different random numbers when it recomputes.

## What it does

Finds `torch.utils.checkpoint.checkpoint(..., preserve_rng_state=False)` around a function that
draws random numbers, usually dropout.

## Why it breaks training

The backward pass runs the function a second time to get its activations. Without the saved state of
the generators, dropout masks differ, and the gradient belongs to neither of the two forward passes.
The loss looks normal. `trueloop lab --only 18b` measures gradients that are off by a quarter.

## Wrong

```python
h = checkpoint(block, h, use_reentrant=False, preserve_rng_state=False)
```

## Right

```python
h = checkpoint(block, h, use_reentrant=False)
```

Without random numbers the flag is right, and saves a little time.

## Sources

- PyTorch, [torch.utils.checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html): the logic
  to stash and restore the RNG states, without which "deterministic output compared to
  non-checkpointed passes" is not guaranteed

## How it is detected

In a running program: the flag is off, the function's output needs a gradient, and the call changes
the state of one of torch's generators. Not reported: functions that draw nothing, layers in eval
mode, and calls without gradients.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Used
from trueloop.doctor.rules.base import Rule


class CheckpointRedraws(Rule):
    code = "TL207"

    def on_used(self, event: Used) -> None:
        if event.what != "torch.utils.checkpoint":
            return
        self.report(
            event.place,
            "The function in this `checkpoint` draws random numbers. With"
            " `preserve_rng_state=False` it draws different ones when the backward pass"
            " runs it again: the gradients belong to a different dropout mask than the"
            " loss.",
            fix="Remove `preserve_rng_state=False`.",
        )
