"""Cross-entropy gets probabilities and applies the softmax a second time.

## What it does

Finds a call of `CrossEntropyLoss` or `F.cross_entropy` whose input comes from a softmax or sigmoid,
in the loop or inside the model's `forward`. Log-probabilities are only redundant: the loss is the
same, and this is advice.

## Why it breaks training

`CrossEntropyLoss` applies `log_softmax` itself. Probabilities are in [0, 1], so their softmax is
almost flat: with ten classes even a perfect prediction has a loss of 1.46 (with two classes, 0.31),
and gradients are small. The outputs of a sigmoid are in [0, 1] too.
Nothing raises; the model learns slowly and stops early. Accuracy suffers less than the loss, so the
fault is easily missed.

## Wrong

```python
class Net(nn.Module):
    def forward(self, x):
        return F.softmax(self.fc(x), dim=1)

loss = nn.CrossEntropyLoss()(net(inputs), labels)
```

## Right

```python
class Net(nn.Module):
    def forward(self, x):
        return self.fc(x)

loss = nn.CrossEntropyLoss()(net(inputs), labels)
probabilities = net(inputs).softmax(dim=1)  # where they are wanted
```

## Sources

- PyTorch, [CrossEntropyLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html):
  "The input is expected to contain the unnormalized logits for each class".
- PyTorch, [torch.nn.functional.cross_entropy](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html)

## How it is detected

The input of torch's cross-entropy comes directly from a softmax or sigmoid; views, casts and
indexing in between are followed, other arithmetic is not. Not reported: probabilities as the
*target*, a softmax that only metrics read, a user-defined class called `CrossEntropyLoss`, a
softmax under a condition that the loss does not share, and one whose result an option may scale. In
a running program without a graph (compiled), the inputs of several batches must all be in [0, 1]
and sum to 1 over the classes.
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

_LOGITS_WANTED = ("CrossEntropyLoss", "LabelSmoothingCrossEntropy", "SoftTargetCrossEntropy")


class SoftmaxBeforeCrossEntropy(Rule):
    code = "TL401"

    def __init__(self) -> None:
        super().__init__()
        self.sources = InputOrigins()
        self.values = UnseenInputs()

    def on_loss(self, event: Loss) -> None:
        criterion = event.criterion
        if not criterion.known or criterion.kind.rpartition(".")[2] not in _LOGITS_WANTED:
            return
        if is_computed(event.input):
            self.refute(event.place)
        activation = activation_of(event, event.input)
        if activation is None or not self.sources.is_new(
            activation, event.place, event.input.models
        ):
            return
        loss = criterion.name or criterion.kind
        if activation.kind in PROBABILITIES:
            self.report(
                event.place,
                f"`{loss}` gets probabilities, from {PROBABILITIES[activation.kind]}, but"
                f" it applies log_softmax itself. The softmax of {PROBABILITIES[activation.kind]}"
                " is nearly flat: the loss cannot approach zero, and gradients are small.",
                related=[(activation.place, f"applies {PROBABILITIES[activation.kind]}")],
                fix=f"Pass the logits, and apply the {activation.kind} only where you need"
                " probabilities.",
            )
        elif activation.kind == "log_softmax" and activation.dim in (1, -1):
            self.report(
                event.place,
                f"`{loss}` applies log_softmax itself, but its input has been through"
                " log_softmax already. The loss is the same; the first log_softmax is"
                " redundant.",
                related=[(activation.place, "the redundant log_softmax")],
                fix="Pass the logits, or use NLLLoss.",
                severity="advice",
            )

    def on_loss_input_range(self, event: LossInputRange) -> None:
        """The graph says nothing: there is none, or it was compiled."""
        criterion = event.criterion
        if criterion.kind != "CrossEntropyLoss" or self.findings:
            return
        batches = self.values.of(event)
        if batches >= 5 and event.classes > 1 and self.values.sums_to_one(event.place):
            self.report(
                event.place,
                f"`{criterion.kind}` gets probabilities: in {batches} batches all inputs"
                " were in [0, 1] and summed to 1 over the classes. It applies log_softmax"
                " itself, and the softmax of a softmax is nearly flat: the loss cannot"
                " approach zero, and gradients are small.",
                fix=("Pass the logits, and apply the softmax only where you need probabilities."),
            )
