"""A softmax runs over the batch instead of the classes.

## What it does

Finds a `softmax` or `log_softmax` over dimension 0 of a batch of logits whose result a
classification loss reads as the distribution over the classes.

## Why it breaks training

Each class is normalised over the samples of the batch, instead of each sample over the classes:
predictions depend on the other samples of the batch, and the probabilities of a sample do not sum
to one. The shapes are right and the loss falls (the network can still make the right entries
large), but accuracy stays well below what it should be, and changes with the batch size.

## Wrong

```python
def forward(self, x):                      # x: (N, features)
    return F.log_softmax(self.fc(x), dim=0)
```

## Right

```python
def forward(self, x):                      # x: (N, features)
    return F.log_softmax(self.fc(x), dim=1)
```

`dim=-1` is right for one sample as well as for a batch, where the classes come last.

## Sources

- PyTorch, [torch.nn.functional.softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html):
  "dim: A dimension along which softmax will be computed".
- PyTorch, [NLLLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html):
  the input has shape (N, C), with the classes in dimension 1.

## How it is detected

The dimension is a literal 0, and the result reaches `NLLLoss` or `CrossEntropyLoss` as input
through shape operations only. The target is a whole batch of labels: from a `DataLoader`, picked by
the same index or mask as the rows of the input, or as those that the model was given, or, in a
running program, one for each of several rows. Losses by hand are read too: `gather` or indexing
picks one class of each row, or (in a running program) the targets are multiplied with it and summed
over the classes. Not reported: code where a single sample could be meant (batches of one, labels
taken one by one), square matrices, and intended softmaxes over the batch (attention over a bag,
contrastive losses, policies on one observation).
"""

from __future__ import annotations

from trueloop.doctor.model.events import Loss, ModelForward
from trueloop.doctor.model.loss_measurements import HandwrittenSoftmax
from trueloop.doctor.model.things import Tensor
from trueloop.doctor.model.value_events import ColumnsPicked
from trueloop.doctor.rules.base import Rule

_OVER_CLASSES = ("NLLLoss", "CrossEntropyLoss")


class SoftmaxOverBatch(Rule):
    code = "TL408"

    def __init__(self) -> None:
        super().__init__()
        self._asked: dict[int, frozenset[str]] = {}
        """Calls of models, and the indices that picked the rows of their inputs."""

    def on_model_forward(self, event: ModelForward) -> None:
        rows = {each.rows_index for each in event.inputs if isinstance(each, Tensor)}
        self._asked[event.serial] = frozenset(rows - {""})

    def on_loss(self, event: Loss) -> None:
        criterion, source = event.criterion, event.input
        if not criterion.known or criterion.kind not in _OVER_CLASSES:
            return
        picked = isinstance(source, Tensor) and _picks_rows(source, event.target)
        if isinstance(source, Tensor) and picked:
            source = source.rows_of
        activation = source.activation if isinstance(source, Tensor) else None
        if activation is None or activation.dim != 0:
            return
        if activation.kind not in ("softmax", "log_softmax"):
            return
        if not (
            picked
            or _is_batch(event.target)
            or _are_rows(source, event.target)
            or self._is_of_rows(source, event.target)
        ):
            return
        self.report(
            activation.place if activation.place.line else event.place,
            f"This {activation.kind} runs over dimension 0, the batch: each class is"
            f" normalised over the samples. `{criterion.name or criterion.kind}` reads the"
            " result as a distribution over classes.",
            related=[(event.place, "the loss that reads it")],
            fix="Use dim=1, or dim=-1 if the classes are the last dimension.",
        )

    def _is_of_rows(self, source: Tensor, target: object) -> bool:
        """The model was given the rows that the labels are picked from, with one index for both:
        a vector of them."""
        if not isinstance(target, Tensor) or not target.rows_index:
            return False
        if not (target.shape or target.several_rows):
            return False
        return any(target.rows_index in self._asked.get(each, ()) for each in source.forwards)

    def on_columns_picked(self, event: ColumnsPicked) -> None:
        """A loss by hand, in source: each sample's class is picked from its row."""
        activation = event.source.activation
        picked = _is_batch(event.columns) or _are_rows(event.source, event.columns)
        if activation is None or activation.dim != 0 or not picked:
            return
        if activation.kind in ("softmax", "log_softmax"):
            self.report(
                activation.place,
                f"This {activation.kind} runs over dimension 0, the batch: each class is"
                " normalised over the samples. The loss picks each sample's class from it, as if"
                " its classes added up to one.",
                related=[(event.place, "picks each sample's class")],
                fix="Use dim=1, or dim=-1 if the classes are the last dimension.",
            )

    def on_handwritten_softmax(self, event: HandwrittenSoftmax) -> None:
        rows, classes = event.shape
        self.report(
            event.place,
            f"This {event.kind} of {rows} samples with {classes} classes runs over dimension 0,"
            " the batch: each class is normalised over the samples. The loss picks each sample's"
            " class from it, as if its classes added up to one.",
            fix="Use dim=1, or dim=-1 if the classes are the last dimension.",
        )


def _are_rows(source: object, target: object) -> bool:
    """A label for each row of a matrix, which is not a square: several samples."""
    if not isinstance(source, Tensor) or not isinstance(target, Tensor):
        return False
    shape, labels = source.shape or (), target.shape or ()
    if len(shape) != 2 or not all(isinstance(each, int) for each in (*shape, *labels)):
        return False
    return labels[:1] == shape[:1] and shape[0] != shape[1] and 1 not in shape


def _picks_rows(source: Tensor, target: object) -> bool:
    """One index picks rows of both: `output[mask]` and `labels[mask]`."""
    if source.rows_of is None:
        return False
    return isinstance(target, Tensor) and target.rows_index == source.rows_index


def _is_batch(target: object) -> bool:
    """It is a whole batch of labels: the input that it is compared with has the classes in
    dimension 1, and the batch in dimension 0."""
    if not isinstance(target, Tensor) or target.position is None or target.loader is None:
        return False
    return target.loader.known and target.loader.batch_size not in (None, 1)
