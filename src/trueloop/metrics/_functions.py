"""Plain functions as metrics, several sets as one, and metrics of transformed values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trueloop import _options
from trueloop.errors import ConfigError
from trueloop.metrics._base import (
    MergedSet,
    MetricSet,
    check_reductions,
    double,
    of_all_ranks,
)
from trueloop.ranks import is_distributed
from trueloop.records import batch_samples

Function = Callable[[Any, Any], Any]


class Functions(MergedSet):
    """Means over samples of functions of (outputs, targets).

    Sums in float64 (float32 on MPS), one for all batches; on several ranks, where all of them are
    added up in the feed's order, one for each.
    """

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = {
            name: _options.function(f"metrics[{name!r}]", function, "outputs, targets", _EXAMPLE)
            for name, function in functions.items()
        }
        self.reset()

    def reset(self) -> None:
        self._batches: list[tuple[int, Tensor]] = []
        """Samples, and the sum of each function over them, shape (functions,)."""

    def to(self, device: torch.device | str) -> MetricSet:
        self._batches = [(n, sums.to(device)) for n, sums in self._batches]
        return self

    @torch.no_grad()
    def update(self, outputs: Any, targets: Any) -> None:
        found = batch_samples(outputs)
        if found is None:
            found = batch_samples(targets)
        samples = 1 if found is None else found
        sums = [
            _sum(name, function(outputs, targets), samples)
            for name, function in self._functions.items()
        ]
        device = next((one.device for one in sums if one.device.type != "cpu"), sums[0].device)
        self._batches.append((samples, torch.stack([one.to(device) for one in sums])))
        if not is_distributed():
            self._batches = [functools.reduce(_union, self._batches)]

    @of_all_ranks
    def compute(self) -> dict[str, float]:
        if not self._batches:
            return dict.fromkeys(self._functions, float("nan"))
        samples, sums = functools.reduce(_union, self._batches)
        return dict(zip(self._functions, (sums / samples).tolist(), strict=True))

    def state_dict(self) -> dict[str, Any]:
        return {"batches": [list(batch) for batch in self._batches]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._batches = [(n, sums.clone()) for n, sums in state["batches"]]


_EXAMPLE = "metrics={'mae': lambda outputs, targets: (outputs - targets).abs()}"


def _union(a: tuple[int, Tensor], b: tuple[int, Tensor]) -> tuple[int, Tensor]:
    return a[0] + b[0], a[1] + b[1].to(a[1].device)


def _sum(name: str, value: Any, samples: int) -> Tensor:
    """The sum over the samples of what a function returned for a batch: a scalar, on its device."""
    if not isinstance(value, Tensor):
        if not isinstance(value, (int, float, np.generic, np.ndarray)):
            raise ConfigError(
                f"the metric {name!r} returned {_options.kind_of(value)}: return one value per "
                "sample, or their mean, as a tensor or a number"
            )
        value = torch.as_tensor(value)
    if value.numel() == 1:
        return double(value.detach()).reshape(()) * samples
    if value.numel() == samples == value.shape[0]:
        return double(value.detach()).reshape(-1).sum()
    raise ConfigError(
        f"the metric {name!r} returned a tensor of shape {tuple(value.shape)} for {samples} "
        "samples: return one value per sample, e.g. values.flatten(1).mean(1), or their mean"
    )


class Combined(MergedSet):
    """Several sets, each with its own scores."""

    def __init__(self, sets: Sequence[MetricSet]) -> None:
        self._sets = list(sets)

    def reset(self) -> None:
        for one in self._sets:
            one.reset()

    def update(self, outputs: Any, targets: Any) -> None:
        for one in self._sets:
            one.update(outputs, targets)

    @of_all_ranks
    def compute(self) -> dict[str, float]:
        return _together([one.compute() for one in self._sets])

    @of_all_ranks
    def details(self) -> dict[str, Any]:
        return _together([one.details() for one in self._sets])

    def to(self, device: torch.device | str) -> MetricSet:
        for one in self._sets:
            one.to(device)
        return self

    @property
    def is_resumable(self) -> bool:
        return all(one.is_resumable for one in self._sets)

    def state_dict(self) -> dict[str, Any]:
        return {str(number): one.state_dict() for number, one in enumerate(self._sets)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for number, one in enumerate(self._sets):
            one.load_state_dict(state[str(number)])

    def _local(self) -> dict[str, Any]:
        for one in self._sets:
            check_reductions(one)
        return {str(number): one._local() for number, one in enumerate(self._sets)}

    def _merged(self, states: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            str(number): one._merged([state[str(number)] for state in states])
            for number, one in enumerate(self._sets)
        }

    def _load_local(self, state: dict[str, Any]) -> None:
        for number, one in enumerate(self._sets):
            one._load_local(state[str(number)])

    # Each of them has what the whole has: none asks the other ranks again.
    @property
    def _is_reduced(self) -> bool:
        return self._reduced

    @_is_reduced.setter
    def _is_reduced(self, value: bool) -> None:
        self._reduced = value
        for one in self._sets:
            one._is_reduced = value

    _reduced = False


def _together(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = [name for part in found for name in part]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"two metrics have the name {twice!r}: give one of them a different name")
    return {name: value for part in found for name, value in part.items()}


class Transformed(Combined):
    """A set that measures transformed outputs and targets."""

    def __init__(self, inner: MetricSet, inverse: Callable[[Any], Any]) -> None:
        super().__init__([inner])
        self._inverse = inverse

    @torch.no_grad()
    def update(self, outputs: Any, targets: Any) -> None:
        super().update(self._inverse(outputs), self._inverse(targets))
