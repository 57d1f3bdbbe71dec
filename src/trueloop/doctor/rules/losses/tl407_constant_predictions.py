"""The model gives the same output for every sample.

## What it does

Finds models whose predictions are equal for all samples of a batch, in many updates, although
samples and targets differ.

## Why it breaks training

The model ignores its input: all weights were initialised to zero (every unit gets the same
gradient, or none), the units of a ReLU layer are dead after a step that was too large, a softmax
runs over a dimension of size 1, or the input is overwritten. It can only learn one constant: the
loss falls to that of guessing the mean or the most frequent class, and stays there.

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

In a running program: the input of a loss comes directly from one forward pass in training, is the
same for all samples (at least four) to a millionth of its size, and inputs and targets differ, in
twenty updates in a row. Not reported: the first updates of a last layer that is initialised to
zero, batches of one repeated sample, constant targets, and a model that has distinguished its
samples once.
"""

from __future__ import annotations

from trueloop.doctor.model.measurements import PredictionSpread
from trueloop.doctor.rules.base import Rule


class ConstantPredictions(Rule):
    code = "TL407"

    def on_prediction_spread(self, event: PredictionSpread) -> None:
        if event.varies:
            self.refute(event.place)
            return
        name = event.spelled or event.model.name
        self.report(
            event.place,
            f"{f'`{name}`' if name else 'The model'} gives the same output for every"
            f" sample in {event.updates} updates in a row: it ignores its input.",
            fix="Check the initialisation, dead units (lower the learning rate), and what"
            " happens to the input in the forward pass.",
        )
