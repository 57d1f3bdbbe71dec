"""Validation samples are also training samples.

## What it does

Finds a loader that validates a model on samples (same data set object, same indices) that the model
was trained on.

## Why it breaks training

Validation measures the model on unseen data. The model has seen these samples, so the score is too
high, more so the longer it trains and the more it overfits. Everything that follows the score
(early stopping, the schedule, the choice of the best epoch and of every hyper-parameter) follows it
into overfitting.

## Wrong

```python
train_set = Subset(data, range(0, 900))
val_set = Subset(data, range(800, 1000))
```

## Right

```python
train_set, val_set = random_split(data, [0.8, 0.2])
```

## Sources

- S. Kapoor and A. Narayanan, [Leakage and the reproducibility crisis in machine-learning-based
  science](https://doi.org/10.1016/j.patter.2023.100804)

## How it is detected

In a running program: one model is trained on a loader and then evaluated, without gradients or in
eval mode, on a different one; both read the same data set object (or slices of the same tensor),
and some samples are the same. If all evaluated samples were trained on, the loader must be called
validation or test, or hold the samples that the current fold does not train on: otherwise it may be
an intended training score. A new optimizer does not make a model a new one, unless its weights were
changed in between (folds). In tables of tensors, rows are compared too, where they are equal in
numbers of which there are many: duplicated before the split. Not reported: a model whose weights
were loaded or drawn again, the training loader itself, a teacher whose outputs a different model
learns from in the same turn, and custom samplers.

In the data, at the start of `trueloop train table` and `images`: held-out rows with the same values
in every input, or images with the same pixels, as training ones; at least five of them, and 2% of
their part. It is a warning, and advice if rows have so few different values that equal rows are
likely, or if folders share only a few images. (Images that are cached neither in memory nor on disk
are not compared.)
"""

from __future__ import annotations

import re

from trueloop.doctor.model.events import Backward, Ended, Made, ModelForward, StateDictLoaded
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import LoaderOverlap, WeightsKept
from trueloop.doctor.model.things import Loader, Model, Optimizer, Tensor
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import batch_loop, called, trained_loader
from trueloop.doctor.rules.shared.passes import names_validation

_HELD_OUT = re.compile(r"val|test|dev|held|hold|eval", re.I)
_TRAIN = re.compile(r"train|fit", re.I)


class TrainValOverlap(Rule):
    code = "TL705"

    def __init__(self) -> None:
        super().__init__()
        self._common: dict[frozenset[Loader], tuple[int, dict[Loader, int]]] = {}
        self._trained: dict[Loader, set[Model]] = {}
        self._last: Loader | None = None
        """The one that was trained on last."""
        self._equal: set[frozenset[Loader]] = set()
        """Loaders with equal rows, that are not the same entries."""
        self._written: dict[Loader, tuple[str, ...]] = {}
        """The names in the expressions that make loaders."""
        self._kept: list[Model] = []
        self._open: list[tuple[ModelForward, Loader, Loader]] = []
        """Findings of the current turn: a teacher's forward, if the batch is trained on."""

    def on_loader_overlap(self, event: LoaderOverlap) -> None:
        both = frozenset((event.loader, event.other))
        sizes = {event.loader: event.size, event.other: event.other_size}
        self._common[both] = (event.common, sizes)
        self._written.update(zip((event.loader, event.other), event.written, strict=True))
        if event.by_content:
            self._equal.add(both)

    def on_weights_kept(self, event: WeightsKept) -> None:
        self._kept = event.models

    def on_backward(self, event: Backward) -> None:
        loader = trained_loader(event)
        if loader is not None and event.loss is not None:
            self._trained.setdefault(loader, set()).update(event.loss.models)
            self._last = loader
            self._open = [
                each for each in self._open if each[1] is not loader or each[0].turn != event.turn
            ]

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        if isinstance(event.thing, Model):
            self._forget([event.thing])

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Optimizer):
            kept, self._kept = self._kept, []
            self._forget([each for each in event.thing.models if each not in kept])

    def _forget(self, models: list[Model]) -> None:
        for trained in self._trained.values():
            trained -= {
                each for each in trained if any(each.shares_parameters(model) for model in models)
            }

    def on_ended(self, event: Ended) -> None:
        self._report_open()

    def on_model_forward(self, event: ModelForward) -> None:
        if any(forward.turn != event.turn for forward, *_ in self._open):
            self._report_open()
        loader = _read_from(event)
        if loader is None or loader in self._trained or (event.grad and event.training):
            return
        for trained, models in self._trained.items():
            found = self._common.get(frozenset((loader, trained)))
            if found is None or not any(each.shares_parameters(event.model) for each in models):
                continue
            common, sizes = found
            if (
                common < sizes[loader]
                or _is_held_out(loader, self._written[loader])
                or self._is_left_out(loader, trained)
            ):
                self._open.append((event, loader, trained))

    def _report_open(self) -> None:
        for forward, loader, trained in self._open:
            common, sizes = self._common[frozenset((loader, trained))]
            self._report(forward.place, loader, trained, common, sizes)
        self._open = []

    def _is_left_out(self, loader: Loader, trained: Loader) -> bool:
        """Its samples are those that the current fold does not train on, and a former one did: the
        training samples of the two folds overlap, and hold more than these."""
        last = self._last
        if last is None or last is trained:
            return False
        both, rest = frozenset((loader, trained)), frozenset((last, trained))
        if frozenset((loader, last)) in self._common or rest not in self._common:
            return False
        sizes = self._common[both][1]
        return sizes[trained] > sizes[loader]

    def _report(
        self, read: Location, loader: Loader, trained: Loader, common: int, sizes: dict[Loader, int]
    ) -> None:
        if frozenset((loader, trained)) in self._equal:
            self.report(
                loader.made,
                f"{common} of the {sizes[loader]} rows of {called(loader, 'this loader')} are equal"
                f" to rows of {called(trained, 'the training loader')}: the samples were"
                " duplicated before the split. The model has seen them in training, so the"
                " validation score is too high.",
                fix="Split first, and duplicate (oversample, augment) the training part only.",
                related=[(trained.made, "trained on"), (read, "used for validation")],
            )
            return
        self.report(
            loader.made,
            f"{common} of the {sizes[loader]} samples of {called(loader, 'this loader')}"
            f" are also in {called(trained, 'the training loader')}: the model has seen"
            " them in training, so the validation score is too high.",
            fix="Split the samples into disjoint parts, for example with `random_split`.",
            related=[(trained.made, "trained on"), (read, "used for validation")],
        )


def _read_from(event: ModelForward) -> Loader | None:
    """The loader whose batch the model is called with."""
    for each in event.inputs:
        if isinstance(each, Tensor) and each.loader is not None:
            return each.loader
    loop = batch_loop(event)
    return loop.loader if loop is not None else None


def _is_held_out(loader: Loader, written: tuple[str, ...]) -> bool:
    names = [loader.name, loader.dataset.name if loader.dataset is not None else ""]
    if not any(names):
        # `DataLoader(Subset(data, val_rows))`, without a name of its own
        return any(map(names_validation, written)) and not any(map(_TRAIN.search, written))
    named = any(_HELD_OUT.search(name) for name in names)
    return named and not any(_TRAIN.search(name) for name in names)
