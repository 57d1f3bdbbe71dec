"""Facts read from the inputs of losses, if the graph does not show how they were made."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import torch

from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Loss
from trueloop.doctor.model.measurements import (
    InitialLoss,
    LabelRuns,
    LossInputRange,
)
from trueloop.doctor.model.things import Criterion, Tensor

if TYPE_CHECKING:
    from trueloop.doctor.live.context import Context
    from trueloop.doctor.model.events import Event
    from trueloop.doctor.model.findings import Location

_BATCHES = 60
"""Batches whose values are read at one place."""
_LABELS = 4096
_RUNS = 256


class Inputs(Probe):
    """Are the inputs of a loss between 0 and 1, and do they sum to 1 over the classes?"""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._seen: Counter[Location] = Counter()

    def lost(self, given: dict[str, Any], output: torch.Tensor, event: Event) -> None:
        assert isinstance(event, Loss)
        classes = event.criterion.kind == "CrossEntropyLoss"
        if not classes and event.criterion.kind != "BCEWithLogitsLoss":
            return
        source: Any = given.get("input")
        thing = event.input
        if not isinstance(thing, Tensor) or thing.activation is not None:
            return
        if classes and (not thing.hidden or source.dim() < 1):
            return
        if not source.is_floating_point() or source.numel() == 0:
            return
        self._seen[event.place] += 1
        if self._seen[event.place] <= _BATCHES:
            self.watcher.measure(_range(event.criterion, source, classes).at(event))


def _range(criterion: Criterion, source: Any, classes: bool) -> LossInputRange:
    plain = source.detach().float()
    numbers = [plain.amin(), plain.amax()]
    if classes:
        dim = 1 if plain.dim() > 1 else 0
        numbers.append((plain.sum(dim) - 1).abs().amax())
    low, high, *off = torch.stack(numbers).tolist()
    exact = source.dtype in (torch.float32, torch.float64)
    return LossInputRange(
        criterion=criterion,
        low=low,
        high=high,
        count=source.numel(),
        sums_to_one=bool(off) and off[0] < (1e-3 if exact else 2e-2),
        classes=source.shape[1 if source.dim() > 1 else 0] if classes else 1,
    )


class Initial(Probe):
    """The first cross-entropy of a model that nobody has trained."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._seen: set[Location] = set()

    def lost(self, given: dict[str, Any], output: torch.Tensor, event: Event) -> None:
        assert isinstance(event, Loss)
        if event.criterion.kind != "CrossEntropyLoss" or self.watcher.updates:
            return
        source: Any = given.get("input")
        target = given.get("target")
        if event.place in self._seen or not event.grad or event.criterion.reduction != "mean":
            return
        self._seen.add(event.place)
        if given.get("weight") is not None or not isinstance(target, torch.Tensor):
            return
        if target.is_floating_point() or target.numel() < 8 or source.dim() < 2:
            return
        made = event.input.activation
        square = source.dim() == 2 and source.shape[0] == source.shape[1]
        if square or made is None or made.kind != "linear":
            return
        found = InitialLoss(loss=float(output.detach()), classes=int(source.shape[1]))
        self.watcher.measure(found.at(event))


class Labels(Probe):
    """In which order the labels come that a classifier is trained on."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._mixed: set[Location] = set()

    def lost(self, given: dict[str, Any], output: torch.Tensor, event: Event) -> None:
        assert isinstance(event, Loss)
        kinds = ("CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss")
        if event.criterion.kind not in kinds or not event.grad or event.place in self._mixed:
            return
        turn, target = event.turn, given.get("target")
        if turn is None or not isinstance(target, torch.Tensor):
            return
        if turn.loop.loader is not None and turn.loop.loader.shuffle is not False:
            return
        column = target.dim() == 1 or (target.dim() == 2 and target.shape[1] == 1)
        if not column or not 0 < target.numel() <= _LABELS:
            return
        values, counts = torch.unique_consecutive(target.detach(), return_counts=True)
        runs = list(zip(values.reshape(-1).tolist(), counts.tolist(), strict=True))
        labels = {label for label, _ in runs}
        if len(runs) > len(labels) or len(runs) > _RUNS or any(x != int(x) for x in labels):
            self._mixed.add(event.place)  # not class by class
            runs = []
        self.watcher.measure(LabelRuns(runs=runs).at(event))


PROBES = (Inputs, Initial, Labels)
