"""The best epoch is chosen by the score on the test data, and that score is reported.

## What it does

Finds a model that is evaluated on the test set in each epoch; the weights of the best score are
kept, loaded at the end, and evaluated on the same test set.

## Why it breaks training

The maximum of many noisy scores is higher than the true score: the test set took part in the choice
and no longer measures new data. Training itself is not affected, the reported number is. The
smaller the test set and the more epochs or settings are compared, the larger the bias.

## Wrong

```python
for epoch in range(epochs):
    train(model, train_loader)
    acc = evaluate(model, test_loader)
    if acc > best:
        best, weights = acc, copy.deepcopy(model.state_dict())
model.load_state_dict(weights)
print("test accuracy", evaluate(model, test_loader))
```

## Right

```python
    acc = evaluate(model, val_loader)  # a part of the training data that is not trained on
```

## Sources

- G. C. Cawley and N. L. C. Talbot, "On Over-fitting in Model Selection and Subsequent Selection
  Bias in Performance Evaluation", JMLR 11, 2010: https://www.jmlr.org/papers/v11/cawley10a.html

## How it is detected

In each epoch of a training loop the model is evaluated on one loader only, which is the test data
by its name or its data set (`train=False`); weights are kept or saved there under a condition;
after the loop these weights, or a deep copy of the model made there, are evaluated on the same
loader. Not reported: a validation loader is evaluated too, nothing is chosen, the name of the data
does not say test, or the state was not copied (TL805): it is that of the last epoch.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from trueloop.doctor.model.events import (
    FileLoaded,
    FileSaved,
    Made,
    ModelForward,
    OptimizerStep,
    StateDictCreated,
    StateDictLoaded,
)
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import Loader, Model, StateDict, Turn
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import batch_loop, lineage

_TEST = re.compile(r"test", re.I)
_NOT_TEST = re.compile(r"val|dev", re.I)


class _Choice(NamedTuple):
    place: Location
    loader: Loader


class SelectsOnTestData(Rule):
    code = "TL711"

    def __init__(self) -> None:
        super().__init__()
        self._trained: dict[Turn, frozenset[str]] = {}
        """Under which conditions each epoch trains."""
        self._seen: dict[Turn, set[Loader]] = {}
        self._states: dict[Location, _Choice] = {}
        self._files: dict[str, _Choice] = {}
        self._copies: dict[Model, _Choice] = {}
        self._loaded: _Choice | None = None

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        for turn in event.turns:
            if turn.loop.kind == "epochs":
                self._trained.setdefault(turn, event.guards)

    def on_model_forward(self, event: ModelForward) -> None:
        loop = batch_loop(event)
        if loop is None or loop.loader is None or (event.grad and event.training is not False):
            return
        epoch = _epoch(event.turns)
        if epoch is not None:
            self._seen.setdefault(epoch, set()).add(loop.loader)
            return
        chosen = self._copies.get(event.model, self._loaded)
        if chosen is not None and chosen.loader is loop.loader:
            self._report(chosen, event.place)

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Model) and event.thing.copy_of is not None:
            choice = self._choice(event)
            if choice is not None:
                self._copies[event.thing] = choice

    def on_state_dict_created(self, event: StateDictCreated) -> None:
        choice = self._choice(event)
        if choice is not None:
            self._states[event.state.made] = choice

    def on_file_saved(self, event: FileSaved) -> None:
        choice = self._choice(event)
        if choice is not None and event.file:
            self._files[event.file] = choice

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        if isinstance(event.state, StateDict) and _epoch(event.turns) is None:
            # One that was not copied has the last epoch's weights: TL805.
            kept = event.state.copied
            self._loaded = self._states.get(event.state.made) if kept else None

    def on_file_loaded(self, event: FileLoaded) -> None:
        if _epoch(event.turns) is None and event.file in self._files:
            self._loaded = self._files[event.file]

    def _choice(self, event: StateDictCreated | FileSaved | Made) -> _Choice | None:
        """Weights are kept under a condition, in an epoch that looked only at test data."""
        epoch = _epoch(event.turns)
        if epoch is None or not event.guards - self._trained.get(epoch, event.guards):
            return None
        loaders = self._seen.get(epoch, set())
        loader = next(iter(loaders)) if len(loaders) == 1 else None
        if loader is None or not _is_test(loader):
            return None
        return _Choice(event.place, loader)

    def _report(self, choice: _Choice, reported: Location) -> None:
        self.report(
            choice.place,
            "The best weights are chosen by their score on"
            f" `{choice.loader.name or 'test'}`, and the reported score comes from the"
            " same data: it is too high.",
            fix="Choose the weights by a validation split of the training data, and use the"
            " test data once, at the end.",
            related=[
                (reported, "tests the chosen weights"),
                (choice.loader.made, "the data"),
            ],
        )


def _epoch(turns: tuple[Turn, ...]) -> Turn | None:
    return next((turn for turn in turns if turn.loop.kind == "epochs"), None)


def _is_test(loader: Loader) -> bool:
    names = [loader.name, *(dataset.name for dataset in lineage(loader.dataset))]
    if any(_NOT_TEST.search(name) for name in names):
        return False
    held_out = any(dataset.is_test for dataset in lineage(loader.dataset))
    return held_out or any(_TEST.search(name) for name in names)
