"""The parameters are in half precision, and small updates round to nothing.

## What it does

Finds parameters of dtype float16 or bfloat16 that an optimizer of torch updates directly, and many
of whose values do not change although they have a gradient.

## Why it breaks training

bfloat16 has eight bits of precision: the next number after 1.0 is 1.0078. An update smaller than
half of that step, and most are, leaves the weight unchanged, in every update. The loss falls at
first, while updates are large, and then stays; a smaller learning rate makes it worse. Mixed
precision solves this: parameters in float32, operations in half precision.

## Wrong

```python
model = Net().to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
```

## Right

```python
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
...
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = criterion(model(inputs), targets)
```

## Sources

- Micikevicius et al., [Mixed Precision Training](https://arxiv.org/abs/1710.03740), 2018, section
  3.1: a master copy of weights in float32.
- Zamirai et al., [Revisiting BFloat16 Training](https://arxiv.org/abs/2010.06192), 2020: nearest
  rounding of weight updates is what harms.

## How it is detected

In a running program: values of up to eight half-precision parameters before and after a step are
compared. In the median of at least five updates at the largest learning rate, a quarter of those
with a gradient are bitwise unchanged. Not reported: float32 parameters under autocast, float32
master copies, optimizers of other packages (they may use stochastic rounding or keep the
remainder), learning rate zero, and half-precision training whose updates are effective.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from trueloop.doctor.model.events import OptimizerStep
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import UpdateRounding
from trueloop.doctor.model.things import Optimizer
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.step_order import named

ENOUGH = 5
"""Updates, at least."""
KEPT = 200
SHARE = 0.25
"""Of the elements that should have moved: lost in the median update."""


class TrainsInHalf(Rule):
    code = "TL507"

    def __init__(self) -> None:
        super().__init__()
        self._lost: dict[Optimizer, list[float]] = defaultdict(list)
        self._rates: dict[Optimizer, float] = {}
        """The largest learning rate so far."""
        self._steps: dict[Optimizer, tuple[Location, str]] = {}

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        self._steps[event.optimizer] = (event.place, event.spelled)

    def on_update_rounding(self, event: UpdateRounding) -> None:
        optimizer = event.optimizer
        shares, rate = self._lost[optimizer], event.lr
        if rate > self._rates.get(optimizer, 0.0):
            self._rates[optimizer] = rate  # it warms up: later updates are larger
            shares.clear()
        if len(shares) < KEPT:
            shares.append(event.lost / event.asked)
        found = median(shares)
        if len(shares) < ENOUGH or found < SHARE:
            return
        place, spelled = self._steps.get(optimizer, (event.place, ""))
        self.report(
            place,
            f"The parameters that {named(optimizer, spelled)} updates are"
            f" {event.dtype}: {found:.0%} of the values with a gradient do not"
            f" change, because their update is smaller than {event.dtype} can"
            " represent.",
            fix="Keep the parameters in float32, and use `torch.autocast` for the forward pass.",
            related=[(optimizer.made, "the optimizer gets these parameters here")],
        )
