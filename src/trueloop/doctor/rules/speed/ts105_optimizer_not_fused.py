"""The optimizer updates its parameters one by one; torch has a fused implementation.

## What it does

Finds optimizers that take 5% or more of an update's time and do not use the fused implementation
that torch has for their class and device.

## Why it breaks training

Nothing is wrong, but training is slow. An unfused step of Adam is a dozen operations on every
parameter, each of which reads and writes memory. A fused step is one. The results agree up to
rounding.

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

In a running program: the share of the step in at least twenty updates, for torch's Adam, AdamW, SGD
and Adagrad (on the CPU), with floating-point parameters, dense gradients, and none of `fused`,
`foreach`, `capturable` and `differentiable` set. On the CPU a fused step is timed on copies of some
of the parameters, and reported only if it takes less than four fifths of the time.
"""

from __future__ import annotations

from trueloop.doctor.model.speed_measurements import OptimizerTime
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called
from trueloop.doctor.rules.shared.timings import counts, duration, percent

SHARE = 0.05
RATIO = 0.8


class OptimizerNotFused(Rule):
    code = "TS105"

    def on_optimizer_time(self, event: OptimizerTime) -> None:
        if not counts(event.updates) or event.share < SHARE:
            return
        ratio = event.ratio
        if ratio is None and event.updates.device == "cpu":
            return
        if ratio is not None and ratio > RATIO:
            return
        kind = event.optimizer.kind.rpartition(".")[2]
        gain = (
            "a fused step reads and writes memory fewer times"
            if ratio is None
            else f"on copies of its parameters a fused step took {percent(ratio)} of that"
        )
        self.report(
            event.place,
            f"A step of {called(event.optimizer, kind)} takes {duration(event.step)},"
            f" {percent(event.share)} of each update; {gain}.",
            fix=f"Use {kind}(..., fused=True).",
        )
