"""Sets of metrics, their sums over ranks, and the exact sums that sets are made of."""

from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from trueloop import _options, ranks
from trueloop.errors import ConfigError, RunError

Reduction = Literal["sum", "mean", "max", "min", "gather"]


class MetricSet(ABC):
    """Metrics that are measured together.

    For one of your own, define `reset`, `update` and `compute`, and `reductions` if it is to work
    on several ranks.
    """

    reductions: ClassVar[Mapping[str, Reduction] | None] = None
    """How each attribute that `update` changes is reduced over the ranks before `compute` and
    `details` see it, e.g. `{"right": "sum", "slowest": "max", "rows": "gather"}`.

    `sum`, `mean`, `max` and `min` are for numbers and tensors, element by element. `gather` is for
    lists with one entry per `update`: the entries of all ranks, in the feed's order. `{}` says that
    `compute` and `details` do it themselves; None is an error on several ranks.
    """
    _is_reduced = False
    """It has the batches of all ranks (`over_ranks`)."""

    @abstractmethod
    def reset(self) -> None:
        """Forget every batch."""

    @abstractmethod
    def update(self, outputs: Any, targets: Any) -> None:
        """Take in one batch.

        Args:
            outputs: the model's raw outputs, as the loss gets them.
            targets: the targets, as the loss gets them.
        """

    @abstractmethod
    def compute(self) -> dict[str, float]:
        """Return the scores of all batches since `reset` by name; NaN where one is undefined."""

    def details(self) -> dict[str, Any]:
        """Return what is not a single number, as plain lists and dicts."""
        return {}

    def to(self, device: torch.device | str) -> MetricSet:
        """Keep the sums on a device; `update` also follows the device of what it is given.

        Args:
            device: the device.

        Returns:
            The set itself.
        """
        return self

    def state_dict(self) -> dict[str, Any]:
        """Return the state since `reset`, as plain data and tensors, some of them live.

        `fit` saves it when the set is one of `train_metrics`, which are measured over an epoch in
        the midst of which a run may stop. Define it with `load_state_dict`, or define neither.
        """
        raise NotImplementedError

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned.

        Args:
            state: what it returned.
        """
        raise NotImplementedError

    @property
    def is_resumable(self) -> bool:
        """Whether the set defines `state_dict` and `load_state_dict`."""
        kind = type(self)
        return (
            kind.state_dict is not MetricSet.state_dict
            and kind.load_state_dict is not MetricSet.load_state_dict
        )

    def _local(self) -> dict[str, Any]:
        """The sums of this rank's batches: `_merged` takes those of each rank."""
        return {name: getattr(self, name) for name in self.reductions or {}}

    def _merged(self, states: list[dict[str, Any]]) -> dict[str, Any]:
        """The sums of all ranks' batches, from the result of `_local` on each."""
        reductions = self.reductions or {}
        return {
            name: reduced([state[name] for state in states], how, f"{type(self).__name__}.{name}")
            for name, how in reductions.items()
        }

    def _load_local(self, state: dict[str, Any]) -> None:
        """Hold `state`, from `_local` or `_merged`."""
        for name, value in state.items():
            here = getattr(self, name)
            setattr(self, name, value.to(here.device) if isinstance(here, Tensor) else value)


class MergedSet(MetricSet):
    """A set of ours, whose state is made of counts and of lists with one entry per batch."""

    reductions: ClassVar[Mapping[str, Reduction] | None] = {}

    def _local(self) -> dict[str, Any]:
        return self.state_dict()

    def _merged(self, states: list[dict[str, Any]]) -> dict[str, Any]:
        merged: dict[str, Any] = merge(states)
        return merged

    def _load_local(self, state: dict[str, Any]) -> None:
        if state:
            self.load_state_dict(state)


def reduced(values: list[Any], how: Reduction, name: str) -> Any:
    """One attribute of all ranks as one value."""
    if how == "gather":
        if not all(isinstance(value, list) for value in values):
            raise ConfigError(
                f"{name} is {_options.kind_of(values[0])}, and 'gather' is for a list with one "
                "entry per update: make it a list, or write a different reduction"
            )
        return interleaved(values)
    if not all(isinstance(value, (int, float, Tensor)) for value in values):
        raise ConfigError(
            f"{name} is {_options.kind_of(values[0])}, and {how!r} is for numbers and tensors: "
            "make it a tensor, or a list with the reduction 'gather'"
        )
    if how in ("max", "min"):
        pick = torch.maximum if how == "max" else torch.minimum
        if not isinstance(values[0], Tensor):
            return max(values) if how == "max" else min(values)
        return functools.reduce(pick, values)
    total = functools.reduce(operator.add, values)
    return total / len(values) if how == "mean" else total


def interleaved(lists: Iterable[list[Any]]) -> list[Any]:
    """The ranks' entries in the feed's order: the first of each rank, the second of each, …"""
    return [
        entry
        for turn in zip_longest(*lists, fillvalue=_NONE)
        for entry in turn
        if entry is not _NONE
    ]


_NONE = object()


def merge(states: list[Any]) -> Any:
    """The states of all ranks as one: counts added up, lists interleaved."""
    first = states[0]
    if isinstance(first, dict):
        return {name: merge([state[name] for state in states]) for name in first}
    if isinstance(first, list):
        return interleaved(states)
    return functools.reduce(operator.add, states)


@contextmanager
def over_ranks(meter: MetricSet) -> Iterator[None]:
    """Give a set the batches of all ranks within a `with`, and its own after it.

    Every rank must enter it. For a loop of your own: `with over_ranks(meter): meter.compute()`.

    Args:
        meter: the set.

    Raises:
        ConfigError: on several ranks, for a set that does not say how it is reduced.
    """
    check_reductions(meter)
    kept = meter._local() if ranks.is_distributed() and not meter._is_reduced else {}
    if not kept:
        yield
        return
    everywhere = ranks.of_each_part(_on_host(kept), "the other ranks' metrics")
    meter._load_local(meter._merged(everywhere))
    meter._is_reduced = True
    try:
        yield
    finally:
        meter._is_reduced = False
        meter._load_local(kept)


Result = TypeVar("Result")


def of_all_ranks(method: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """A method of a set that is called as itself, and sees the batches of all ranks."""

    @functools.wraps(method)
    def wrapped(self: Any) -> Result:
        with over_ranks(self):
            return method(self)

    return wrapped


def check_reductions(meter: MetricSet) -> None:
    """Raise `ConfigError` on several ranks for a set that does not say how it is reduced."""
    if ranks.is_distributed() and meter.reductions is None:
        name = type(meter).__name__
        raise ConfigError(
            f"{name} does not say how it adds up over {ranks.world_size()} ranks, and would give "
            f"those of one: write in the class {name}, for each attribute that update changes, "
            "e.g. reductions = {'total': 'sum'}"
        )


def _on_host(state: dict[str, Any]) -> dict[str, Any]:
    """A copy of a state on the CPU, to be sent."""
    copied: dict[str, Any] = tree_map_only(Tensor, lambda t: t.detach().cpu().clone(), state)
    return copied


def state_over_ranks(meter: MetricSet) -> dict[str, Any]:
    """The states of all ranks, for `load_state_over_ranks`: every rank must call it. In one process
    `state_dict` itself."""
    if not ranks.is_distributed():
        return meter.state_dict()
    return {_EACH: ranks.gathered(_on_host(meter.state_dict()), "the other ranks' metrics")}


def load_state_over_ranks(meter: MetricSet, state: dict[str, Any]) -> None:
    """Go on from what `state_over_ranks` gave, on as many ranks or on others."""
    states = state.get(_EACH, [state])
    if len(states) == ranks.world_size():
        meter.load_state_dict(states[ranks.rank()])
        return
    parts = []
    for one in states:
        meter.load_state_dict(one)
        parts.append(_on_host(meter._local()))
    if not parts[0]:
        raise RunError(
            f"the state of {type(meter).__name__} is that of {len(states)} ranks, and with "
            f"reductions = {{}} it cannot be added up: resume with {len(states)} ranks"
        )
    merged = meter._merged(parts)
    if not ranks.is_main():
        # Rank 0 goes on from the sums, the others from nothing; a mean is that of equals.
        meter.reset()
        means = [name for name, how in (meter.reductions or {}).items() if how == "mean"]
        merged = {name: merged[name] for name in means}
    meter._load_local(merged)


_EACH = "of each rank"


class Sums:
    """Named int64 sums of fixed shapes, on one device."""

    def __init__(self, **shapes: tuple[int, ...]) -> None:
        self._shapes = shapes
        self.device = torch.device("cpu")
        self.reset()

    def reset(self) -> None:
        # Tensors made under inference mode could not be added to outside it.
        with torch.inference_mode(False):
            self._sums = {
                name: torch.zeros(shape, dtype=torch.int64, device=self.device)
                for name, shape in self._shapes.items()
            }

    def to(self, device: torch.device | str) -> None:
        self.device = torch.device(device)
        with torch.inference_mode(False):
            self._sums = {name: value.to(device) for name, value in self._sums.items()}

    def add(self, name: str, value: Tensor | int) -> None:
        self._sums[name] += value

    def count(self, name: str, indices: Tensor, kept: Tensor | None = None) -> None:
        """Add 1 at each flat index (int64, 1-D), or 0 where not kept; waits for no device.

        By `index_add_`: `bincount` would wait, and torchmetrics' replacement for deterministic
        mode makes a matrix of len(indices) times all cells.
        """
        one = torch.ones_like(indices) if kept is None else kept.long()
        self._sums[name].view(-1).index_add_(0, indices, one)

    def state_dict(self) -> dict[str, Any]:
        return dict(self._sums)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with torch.inference_mode(False):
            self._sums = {name: value.to(self.device, copy=True) for name, value in state.items()}

    def total(self, name: str) -> Tensor:
        """The sum, float64, on the CPU."""
        return self._sums[name].cpu().double()


def metric_state(metric: Any) -> dict[str, Any]:
    """The states of a torchmetrics `Metric` by name: tensors, or lists of tensors."""
    states = {name: getattr(metric, name) for name in metric._defaults}
    listed = {name: list(part) if isinstance(part, list) else part for name, part in states.items()}
    return {"updates": metric.update_count, "states": listed}


def load_metric_state(metric: Any, state: dict[str, Any]) -> None:
    """Load what `metric_state` returned, on the metric's device."""

    def here(part: Any) -> Any:
        return [here(one) for one in part] if isinstance(part, list) else part.to(metric.device)

    metric.reset()
    for name, part in state["states"].items():
        setattr(metric, name, here(part))
    metric._update_count = state["updates"]  # else `compute` warns that there was no update


def double(values: Tensor) -> Tensor:
    """In float64, or in float32 where the device (Apple's MPS) has no more."""
    return values.float() if values.device.type == "mps" else values.double()


def ratio(part: Tensor, whole: Tensor) -> Tensor:
    """part / whole, 0 where both are 0."""
    return part / torch.where(whole > 0, whole, 1)


def mean_where(defined: Tensor, values: Tensor, weights: Tensor | None = None) -> float:
    """The (weighted) mean of the defined values; NaN if there are none."""
    share = defined.to(values.dtype) if weights is None else weights * defined
    return float((torch.where(defined, values, 0) * share).sum() / share.sum())
