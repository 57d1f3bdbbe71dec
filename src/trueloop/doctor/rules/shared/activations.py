"""The activation before the input of a loss: shared by the rules on losses."""

from __future__ import annotations

import re

from trueloop.doctor.model.events import Loss
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import LossInputRange
from trueloop.doctor.model.things import Activation, Model, Tensor

PROBABILITIES = {"softmax": "a softmax", "sigmoid": "a sigmoid"}
NO_LOGARITHMS = {
    "linear": "logits, directly from a layer",
    "product": "logits, from a matrix product",
    "softmax": "probabilities, from a softmax",
    "sigmoid": "probabilities, from a sigmoid",
}
"""Kind of activation -> what it gives, where that is certainly no log-probability."""


_WHERE_IT_RUNS = re.compile(r"is_cuda|n_?gpus?\b|num_gpus|device_count|data_parallel", re.I)
"""Conditions that say on how many devices a model runs, and nothing of what it computes."""


def activation_of(event: Loss, value: object) -> Activation | None:
    """The operation whose result is an argument of a loss; None where that is not known, or where
    it depends on a condition that the loss does not depend on."""
    found = value.activation if isinstance(value, Tensor) else None
    if found is None:
        return None
    asked = {guard for guard in found.guards if not _WHERE_IT_RUNS.search(guard)}
    return found if asked <= event.guards else None


def is_computed(value: object) -> bool:
    """An argument of a loss that came out of arithmetic of which nothing more is known."""
    return isinstance(value, Tensor) and value.activation is None and not value.hidden


class InputOrigins:
    """Where the inputs that were spoken of came from: a softmax in a model's `forward` is one
    fault, however many losses its output meets."""

    def __init__(self) -> None:
        self._losses: dict[object, Location] = {}

    def is_new(self, activation: Activation, loss: Location, models: frozenset[Model]) -> bool:
        """This is the first loss that is fed from there: from a line, or, where the line is not
        known, from these models."""
        source = activation.place if activation.place.line else models
        return self._losses.setdefault(source, loss) == loss


class UnseenInputs:
    """Inputs of losses whose making was not seen: what their values say over several batches."""

    def __init__(self) -> None:
        self._seen: dict[Location, list[LossInputRange]] = {}
        self._outside: set[Location] = set()

    def of(self, event: LossInputRange) -> int:
        """How many batches were in [0, 1]; 0 once one was not."""
        if event.low < 0 or event.high > 1 or event.low != event.low:
            self._outside.add(event.place)
        if event.place in self._outside:
            return 0
        self._seen.setdefault(event.place, []).append(event)
        return len(self._seen[event.place])

    def sums_to_one(self, place: Location) -> bool:
        return all(each.sums_to_one for each in self._seen[place])

    def fill_the_unit(self, place: Location) -> bool:
        """Many values, near 0 as well as near 1: logits would have gone beyond."""
        seen = self._seen[place]
        low, high = min(each.low for each in seen), max(each.high for each in seen)
        many = sum(each.count for each in seen) >= 200
        return bool(many and low < 0.1 and high > 0.9)
