"""Logits are compared with 0.5, as if they were probabilities.

## What it does

Finds predicted classes that come from logits compared with 0.5. The logits are the output of a
layer that the program also gives to `BCEWithLogitsLoss`.

## Why it breaks training

A logit of 0 is a probability of one half. A logit of 0.5 is one of 0.62: samples between the two
are counted as negative. Accuracy, recall and the choices that are made by them (the best epoch,
early stopping) are wrong, and the deployed model answers "no" too often. The loss itself is right,
so nothing looks broken.

## Wrong

```python
logits = model(x)
loss = nn.functional.binary_cross_entropy_with_logits(logits, y)
correct += ((logits > 0.5) == y.bool()).sum().item()
```

## Right

```python
logits = model(x)
loss = nn.functional.binary_cross_entropy_with_logits(logits, y)
correct += ((logits > 0) == y.bool()).sum().item()
```

or `torch.sigmoid(logits) > 0.5`.

## Sources

- PyTorch,
  [BCEWithLogitsLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html):
  "this loss combines a Sigmoid layer and the BCELoss in one single class"

## How it is detected

What comes straight out of a linear or convolution layer is given to `BCEWithLogitsLoss`, and what
comes straight out of the same layer is compared with 0.5 (`>`, `>=`, `<`, `<=`), in the same
program. Not reported: anything with a sigmoid or other arithmetic in between, outputs of layers
that are not known, and comparisons on a condition that the loss does not depend on (the network
may end in a sigmoid there).
"""

from __future__ import annotations

from trueloop.doctor.model.events import Ended, Loss
from trueloop.doctor.model.things import Model
from trueloop.doctor.model.value_events import ComparedWithHalf
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.activations import activation_of

_PROBABILITIES = {
    "above": "a logit above 0.5 is a probability above 0.62, not above one half",
    "below": "a logit below 0.5 is a probability below 0.62, not below one half",
}


class LogitsComparedWithHalf(Rule):
    code = "TL411"

    def __init__(self) -> None:
        super().__init__()
        self._losses: dict[Model, Loss] = {}
        """By the layer that makes their logits."""
        self._compared: list[ComparedWithHalf] = []

    def on_loss(self, event: Loss) -> None:
        if event.criterion.known and event.criterion.kind == "BCEWithLogitsLoss":
            activation = activation_of(event, event.input)
            if activation is not None and activation.layer is not None:
                self._losses.setdefault(activation.layer, event)

    def on_compared_with_half(self, event: ComparedWithHalf) -> None:
        self._compared.append(event)

    def on_ended(self, event: Ended) -> None:
        for compared in self._compared:
            activation = compared.tensor.activation
            loss = self._losses.get(activation.layer) if activation is not None else None
            if loss is None or activation is None or activation.layer is None:
                continue
            if not compared.guards <= loss.guards:
                continue  # `if ends_in_sigmoid(model): predicted = output > 0.5`
            name = loss.criterion.name or "BCEWithLogitsLoss"
            self.report(
                compared.place,
                f"`{name}` takes these outputs for logits, but here they are compared with 0.5 as"
                f" if they were probabilities: {_PROBABILITIES[compared.how]}. Scores and"
                " predictions from this comparison are wrong.",
                related=[
                    (activation.place, "the layer that makes them"),
                    (loss.place, "the loss that applies the sigmoid"),
                ],
                fix="Compare them with 0, or compare `torch.sigmoid(...)` of them with 0.5.",
            )
