"""The first cross-entropy of a new model is far above that of guessing.

## What it does

Compares the first cross-entropy of an untrained model with log(classes), the value for equal
probabilities.

## Why it breaks training

An untrained model should not be confident. A first loss many times log(classes) means that it is
confident of wrong answers: the weights of its last layer, or its inputs, are far too large. The
first hundreds of updates only shrink the logits, with gradients that saturate activations; some
networks never recover, and a learning rate that suits the rest of the run is too large for its
start.

## Wrong

```python
self.head = nn.Linear(512, 1000)
nn.init.normal_(self.head.weight)  # of standard deviation 1: the logits' is 22
```

## Right

```python
self.head = nn.Linear(512, 1000)   # torch's own initialisation
```

## Sources

- A. Karpathy, [A Recipe for Training Neural Networks](https://karpathy.github.io/2019/04/25/recipe/):
  "verify loss @ init".
- X. Glorot and Y. Bengio, [Understanding the difficulty of training deep feedforward neural
  networks](https://proceedings.mlr.press/v9/glorot10a.html)

## How it is detected

In a running program: before any optimizer has stepped, the mean cross-entropy of logits directly
from a layer, on at least eight hard targets, is above 2 log(classes) + 2. Not reported: loaded
weights, class weights, soft targets, scaled logits (contrastive losses), and every loss below
(pretrained models).
"""

from __future__ import annotations

from math import isfinite, log

from trueloop.doctor.model.events import StateDictLoaded
from trueloop.doctor.model.measurements import InitialLoss
from trueloop.doctor.rules.base import Rule


class InitialLossOff(Rule):
    code = "TL406"

    def __init__(self) -> None:
        super().__init__()
        self._loaded = False

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        self._loaded = True

    def on_initial_loss(self, event: InitialLoss) -> None:
        if self._loaded:
            return
        loss, classes = event.loss, event.classes
        if classes < 2 or not isfinite(loss) or loss <= 2 * log(classes) + 2:
            return
        self.report(
            event.place,
            f"Before the first update the cross-entropy is {loss:.3g}, but guessing among"
            f" {classes} classes gives log({classes}) = {log(classes):.3g}. The untrained"
            " model is confident of wrong answers: the weights of its last layer, or its"
            " inputs, are too large.",
            fix="Use torch's default initialisation for the last layer or scale it down, and"
            " normalise the inputs.",
        )
