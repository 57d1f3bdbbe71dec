"""A decay that is computed from the step count is applied to its own last value.

## What it does

Finds a temperature, an exploration rate or a learning rate that is multiplied, in each turn, by a
function of the turn's number: `t = max(t * exp(-rate * step), low)`.

## Why it breaks training

`exp(-rate * step)` is the whole decay since the start. Applied to the last value, it compounds:
after n steps the exponent is not `rate * n` but `rate * n * (n - 1) / 2`. The value falls with the
square of the steps, and reaches its limit (or zero) after a small part of the planned time: with a
rate of 0.0001, it is halved after 120 steps instead of 7,000. Nothing raises; the rest of the run
trains with the final value.

## Wrong

```python
temperature = 1.0
for step, batch in enumerate(loader):
    ...
    temperature = max(temperature * math.exp(-0.0001 * step), 0.5)
```

## Right

```python
START = 1.0
for step, batch in enumerate(loader):
    ...
    temperature = max(START * math.exp(-0.0001 * step), 0.5)
```

## Sources

- Jang, Gu, Poole, [Categorical reparameterization with
  Gumbel-Softmax](https://arxiv.org/abs/1611.01144), 2017: the temperature is `max(0.5, exp(-rt))`
  of the global step t
- PyTorch,
  [ExponentialLR](https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ExponentialLR.html):
  the closed form and the factor of one step

## How it is detected

In a loop that steps an optimizer, a statement multiplies a variable by a power or an exponential of
a count that grows with the loop, and the variable has kept its value since the turn before. Not
reported: a decay of a value that is set again in each turn, a constant factor (`t * 0.99`,
`gamma ** (1 / steps)`), sums of discounted rewards, and products outside of training.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Ended, OptimizerStep
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import Loop, Turn
from trueloop.doctor.model.value_events import DecayedAgain
from trueloop.doctor.rules.base import Rule

_TURNS = 2


class AnnealingCompounds(Rule):
    code = "TL609"

    def __init__(self) -> None:
        super().__init__()
        self._decays: dict[Location, DecayedAgain] = {}
        self._turns: dict[Location, set[tuple[Turn, ...]]] = {}
        self._training: set[Loop] = set()
        """Loops in which an optimizer steps."""

    def on_decayed_again(self, event: DecayedAgain) -> None:
        self._decays[event.place] = event
        self._turns.setdefault(event.place, set()).add(event.turns)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        self._training.update(turn.loop for turn in event.turns)

    def on_ended(self, event: Ended) -> None:
        for place, found in self._decays.items():
            trains = any(turn.loop in self._training for turn in found.turns)
            if trains and (found.windows or len(self._turns[place]) >= _TURNS):
                self.report(
                    place,
                    f"`{found.variable}` is multiplied by a decay that is computed from"
                    f" `{found.count}`, and its last value has that factor already: the exponent"
                    f" grows with the square of `{found.count}`, and the value reaches its end far"
                    " too early.",
                    fix="Multiply the initial value, kept under its own name, by this decay; or"
                    " multiply the last value by a constant factor.",
                )
