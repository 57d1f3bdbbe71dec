"""Activation checkpointing draws other random numbers when it computes again.

## What it does

Finds `torch.utils.checkpoint.checkpoint(..., preserve_rng_state=False)` around a function that
draws random numbers: dropout, most often.

## Why it breaks training

In the backward the function is run a second time, to have its activations again. Without the state
of the generators it draws other masks, and the gradient belongs to neither of the two functions.
The loss looks as ever. `trueloop lab --only 18b` measures gradients that are off by a quarter.

## Wrong

```python
h = checkpoint(block, h, use_reentrant=False, preserve_rng_state=False)
```

## Right

```python
h = checkpoint(block, h, use_reentrant=False)
```

The flag is right, and saves a little time, where nothing is random.

## Sources

- PyTorch, [torch.utils.checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html): the logic
  to stash and restore the RNG states, without which "deterministic output compared to
  non-checkpointed passes" is not guaranteed

## How it is detected

While the program runs: the flag is off, what the function gives needs a gradient, and the state of
a generator of torch's is another one after the call. Silent for functions that draw nothing, for
layers in eval mode, and without gradients.
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
