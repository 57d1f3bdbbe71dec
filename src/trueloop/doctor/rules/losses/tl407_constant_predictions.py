"""The model gives the same output for every sample.

## What it does

Finds models whose predictions are equal for all samples of a batch, update after update, although
the samples and their targets differ.

## Why it breaks training

Such a model has stopped looking at its input, or never did: all weights were initialised to zero
(every unit gets the same gradient, or none), the units of a ReLU layer are dead after too large a
step, a softmax runs over a dimension of one, the input was overwritten on the way. What is left to
learn is one constant: the loss falls to that of guessing the mean or the commonest class, and
stays there.

## Wrong

```python
for p in model.parameters():
    nn.init.zeros_(p)
```

## Right

```python
for p in model.parameters():
    if p.dim() > 1:
        nn.init.kaiming_normal_(p)
```

## Sources

- Glorot and Bengio, [Understanding the difficulty of training deep feedforward neural
  networks](https://proceedings.mlr.press/v9/glorot10a.html), 2010
- Lu et al., [Dying ReLU and Initialization](https://arxiv.org/abs/1903.06733), 2019

## How it is detected

While the program runs: what a loss function is given comes straight from one forward in training,
is the same for all samples (four at least) to a millionth of its size, and the forward's inputs and
the targets are not, in twenty updates in a row. The first updates of a last layer that begins at
zero, batches of one sample repeated, and constant targets are silent; so is a model that tells its
samples apart once.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Measured
from trueloop.doctor.rules.base import Rule


class ConstantPredictions(Rule):
    code = "TL407"

    def on_measured(self, event: Measured) -> None:
        if event.what != "predictions":
            return
        place = event.values["place"]
        if event.values["kind"] == "varies":
            self.refute(place)
            return
        name = event.values["spelled"] or getattr(event.subject, "name", "")
        self.report(
            place,
            f"{f'`{name}`' if name else 'The model'} gives the same output for every"
            f" sample in {event.values['updates']} updates in a row: it ignores its input.",
            fix="Check the initialisation, dead units (lower the learning rate), and what"
            " happens to the input in the forward pass.",
        )
