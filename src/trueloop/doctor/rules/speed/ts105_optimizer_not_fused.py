"""The optimizer goes through its parameters one by one, and torch has a faster way for it.

## What it does

Finds optimizers that take a twentieth or more of an update's time, for whose kind and device torch
has a fused implementation that they do not use.

## Why it breaks training

It does not: it is slow. Written out, a step of Adam is a dozen operations on every parameter, each
of which goes through memory again. Fused, it is one. The results agree up to rounding.

## Wrong

```python
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
```

## Right

```python
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
```

## Sources

- PyTorch, [torch.optim: algorithms](https://docs.pytorch.org/docs/stable/optim.html#algorithms): on
  for-loop, foreach and fused implementations
- PyTorch, [torch.optim.AdamW](https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html)

## How it is detected

While the program runs: the share of the step in at least twenty updates, for Adam, AdamW, SGD and
Adagrad (on the CPU) themselves, holding plain floating-point parameters with dense gradients, of
which none of `fused`, `foreach`, `capturable` and `differentiable` was set. On the CPU a fused step
is tried out on copies of some of the parameters: unless it takes less than four fifths of the time,
nothing is said.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Measured
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called
from trueloop.doctor.rules.shared.timings import counts, duration, percent

SHARE = 0.05
RATIO = 0.8


class OptimizerNotFused(Rule):
    code = "TS105"

    def on_measured(self, event: Measured) -> None:
        values = event.values
        if event.what != "optimizer step" or not counts(values) or values["share"] < SHARE:
            return
        ratio = values["ratio"]
        if ratio is None and values["device"] == "cpu":
            return
        if ratio is not None and ratio > RATIO:
            return
        kind = event.subject.kind.rpartition(".")[2]
        gain = (
            "a fused step reads and writes memory fewer times"
            if ratio is None
            else f"on copies of its parameters a fused step took {percent(ratio)} of that"
        )
        self.report(
            event.place,
            f"A step of {called(event.subject, kind)} takes {duration(values['step'])},"
            f" {percent(values['share'])} of each update; {gain}.",
            fix=f"Use {kind}(..., fused=True).",
        )
