"""The loss counts the padding of short sequences.

## What it does

Finds a loss over padded sequences whose targets contain the padding: neither `ignore_index` nor a
mask keeps it from being counted.

## Why it breaks training

The sequences of a batch are filled up to the length of the longest. Where the loss counts the
filling, the model learns to predict it, which is easy, and the mean is over positions that mean
nothing: the loss looks lower than it is, the gradient of the real targets gets smaller the more
padding a batch has, and accuracy over all positions says little. Nothing raises.

## Wrong

```python
criterion = nn.CrossEntropyLoss()
loss = criterion(logits.view(-1, vocabulary), targets.view(-1))
```

## Right

```python
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
loss = criterion(logits.view(-1, vocabulary), targets.view(-1))
```

and for numbers: `((prediction - target).square() * mask).sum() / mask.sum()`.

## Sources

- PyTorch, [CrossEntropyLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html):
  `ignore_index` "specifies a target value that is ignored and does not contribute to the input
  gradient"
- PyTorch, [Embedding](https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html):
  `padding_idx`
- Hugging Face, [Token
  classification](https://huggingface.co/docs/transformers/tasks/token_classification): labels of
  padding are set to -100

## How it is detected

In a running program: an embedding is given its `padding_idx`, a model is given a mask, or the rows
of an input end in a value that occurs nowhere else. At these positions, which are all at the ends
(or the beginnings) of rows, all targets of the loss have one value, in three batches or more, and
`backward` runs through that loss. Not reported: `ignore_index` or a class weight of 0 for that
value; targets that were selected by a mask or packed; `reduction="none"`; predictions that a mask
has made constant; rows that all have the same filling.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward
from trueloop.doctor.model.loss_measurements import PaddingScored
from trueloop.doctor.model.things import Criterion
from trueloop.doctor.rules.base import Rule


class PaddingIsScored(Rule):
    code = "TL409"

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Criterion, PaddingScored] = {}

    def on_padding_scored(self, event: PaddingScored) -> None:
        self.found[event.criterion] = event

    def on_backward(self, event: Backward) -> None:
        found, self.found = self.found, {}
        for criterion, measured in found.items():
            if event.loss is not None and criterion in event.loss.criteria:
                self._report(measured)

    def _report(self, found: PaddingScored) -> None:
        value = f"{found.value:g}"
        shown = {
            "padding_idx": f"the embedding's input is {found.fill}, its `padding_idx`,",
            "mask": "the mask that the model is given marks padding,",
            "tails": "the rows of the input end in a filling value,",
        }[found.by]
        self.report(
            found.place,
            f"{found.padded / found.targets:.0%} of the targets of this loss are padding"
            f" ({found.padded} of {found.targets} in the first batches): there {shown} and every"
            f" target is {value}. The loss counts them: the model learns to predict padding, and"
            " the mean looks better than it is.",
            fix=_remedy(found, value),
        )


def _remedy(found: PaddingScored, value: str) -> str:
    if not found.classes:
        return (
            "Average over the real positions: `(loss * mask).sum() / mask.sum()` with"
            ' `reduction="none"`.'
        )
    if found.elsewhere:
        return (
            f"Fill the targets with -100, which the loss ignores, in place of {value}:"
            " `pad_sequence(targets, padding_value=-100)`."
        )
    return f"Pass `ignore_index={value}` to the loss."
