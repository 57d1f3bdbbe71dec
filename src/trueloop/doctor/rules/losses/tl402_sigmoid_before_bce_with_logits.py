"""`BCEWithLogitsLoss` gets probabilities and applies the sigmoid a second time.

## What it does

Finds a call of `BCEWithLogitsLoss` or `F.binary_cross_entropy_with_logits` whose input comes from a
sigmoid or softmax, in the loop or inside the model's `forward`.

## Why it breaks training

The loss applies the sigmoid itself. For an input in [0, 1] the result is between 0.5 and 0.73: no
prediction can be confidently negative, and the loss of a negative sample never falls below 0.69.
Training runs, and the loss falls a little and stays; recall looks fine, precision does not.

## Wrong

```python
model = nn.Sequential(nn.Linear(20, 1), nn.Sigmoid())
criterion = nn.BCEWithLogitsLoss()
loss = criterion(model(inputs), labels)
```

## Right

```python
model = nn.Linear(20, 1)
criterion = nn.BCEWithLogitsLoss()
loss = criterion(model(inputs), labels)
predicted = model(inputs) > 0  # the same as a probability above 0.5
```

## Sources

- PyTorch, [BCEWithLogitsLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html):
  "This loss combines a Sigmoid layer and the BCELoss in one single class".
- PyTorch, [torch.nn.functional.binary_cross_entropy_with_logits](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.binary_cross_entropy_with_logits.html)

## How it is detected

In source, the input comes directly from a sigmoid or softmax; views, casts and indexing in between
are followed, other arithmetic is not. In a running program, if the sigmoid is not visible, all
inputs over several batches are in [0, 1] and close to both ends. Not reported: a sigmoid inside the
network (gates), one that only metrics read, probabilities as the *target*, and `BCELoss`, which
expects probabilities.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Loss
from trueloop.doctor.model.measurements import LossInputRange
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.activations import (
    PROBABILITIES,
    InputOrigins,
    UnseenInputs,
    activation_of,
    is_computed,
)


class SigmoidBeforeBceWithLogits(Rule):
    code = "TL402"

    def __init__(self) -> None:
        super().__init__()
        self.sources = InputOrigins()
        self.values = UnseenInputs()

    def on_loss(self, event: Loss) -> None:
        criterion = event.criterion
        if not criterion.known or criterion.kind not in ("BCEWithLogitsLoss", "sigmoid_focal_loss"):
            return
        if is_computed(event.input):
            self.refute(event.place)
        activation = activation_of(event, event.input)
        if activation is None or activation.kind not in PROBABILITIES:
            return
        if not self.sources.is_new(activation, event.place, event.input.models):
            return
        what = PROBABILITIES[activation.kind]
        self.report(
            event.place,
            f"`{criterion.name or criterion.kind}` gets probabilities, from {what}, but it"
            " applies the sigmoid itself: no prediction can be below 0.5.",
            related=[(activation.place, f"applies {what}")],
            fix="Pass the logits, and apply the sigmoid only where you need probabilities.",
        )

    def on_loss_input_range(self, event: LossInputRange) -> None:
        criterion = event.criterion
        if criterion.kind != "BCEWithLogitsLoss" or self.findings:
            return
        batches = self.values.of(event)
        if batches >= 5 and self.values.fill_the_unit(event.place):
            self.report(
                event.place,
                f"`{criterion.kind}` gets probabilities: in {batches} batches all inputs"
                " were in [0, 1], close to both ends. It applies the sigmoid itself: no"
                " prediction can be below 0.5.",
                fix=("Pass the logits, and apply the sigmoid only where you need probabilities."),
            )
