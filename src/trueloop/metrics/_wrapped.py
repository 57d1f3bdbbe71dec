"""Metrics of torchmetrics as a set."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from trueloop import ranks
from trueloop.metrics._base import (
    MergedSet,
    MetricSet,
    interleaved,
    load_metric_state,
    metric_state,
    of_all_ranks,
)

_APART = 4096
"""Numbers of a floating-point sum, at most, that several ranks keep of each batch by itself."""


class Wrapped(MergedSet):
    """Metrics of torchmetrics: scalars are scores, everything else is a detail.

    Over several ranks, states are reduced as each metric says (`dist_reduce_fx`), lists in the
    feed's order. So are floating-point sums, batch by batch, so that they are those of one process;
    of metrics that read their own sums in `update`, and of long ones, rank by rank.
    """

    def __init__(self, parts: list[tuple[str | None, Any]]) -> None:
        self._parts = parts
        self._device: torch.device | None = None
        self._apart: dict[int, dict[str, list[Tensor]]] = {}
        """By metric (its id) and state: a sum's share of each batch, on several ranks."""

    def reset(self) -> None:
        self._apart = {}
        for _, metric in self._parts:
            metric.reset()

    def update(self, outputs: Any, targets: Any) -> None:
        if isinstance(outputs, Tensor) and outputs.device != self._device:
            self.to(outputs.device)
        if ranks.is_distributed():
            # One by one, and not in a collection's groups: each has its sums for itself.
            for metric in self._singles():
                self._update_apart(metric, outputs, targets)
            return
        for _, metric in self._parts:
            metric.update(outputs, targets)

    def _update_apart(self, metric: Any, outputs: Any, targets: Any) -> None:
        before = {name: getattr(metric, name) for name in _sums(metric)}
        for name, value in before.items():
            setattr(metric, name, torch.zeros_like(value))
        metric.update(outputs, targets)
        kept = self._apart.setdefault(id(metric), {name: [] for name in before})
        for name, value in before.items():
            share = getattr(metric, name).clone()
            kept[name].append(share)
            setattr(metric, name, value + share)

    @of_all_ranks
    def compute(self) -> dict[str, float]:
        return {name: float(v) for name, v in self._values().items() if v.numel() == 1}

    @of_all_ranks
    def details(self) -> dict[str, Any]:
        return {name: v.tolist() for name, v in self._values().items() if v.numel() != 1}

    def to(self, device: torch.device | str) -> MetricSet:
        self._device = torch.device(device)
        for _, metric in self._parts:
            metric.to(device)
        return self

    def _singles(self) -> list[Any]:
        """Every single metric, those of a collection in its own order."""
        from torchmetrics import MetricCollection

        found = []
        for _, metric in self._parts:
            if isinstance(metric, MetricCollection):
                # Asked so, each has its state for itself, and none shares that of its group.
                found += [one for _, one in metric.items(keep_base=True, copy_state=True)]
            else:
                found.append(metric)
        return found

    def _metrics(self) -> list[Any]:
        """Every single metric, each followed by those that it is made of."""
        from torchmetrics import Metric

        singles = self._singles()
        return [one for each in singles for one in each.modules() if isinstance(one, Metric)]

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {}
        for number, metric in enumerate(self._metrics()):
            state[str(number)] = metric_state(metric)
            if apart := self._apart.get(id(metric)):
                state[str(number)]["apart"] = {name: list(each) for name, each in apart.items()}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._apart = {}
        for number, metric in enumerate(self._metrics()):
            one = state[str(number)]
            load_metric_state(metric, one)
            if "apart" in one:
                self._apart[id(metric)] = {name: list(each) for name, each in one["apart"].items()}

    def _merged(self, states: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            str(number): _merged(metric, [state[str(number)] for state in states])
            for number, metric in enumerate(self._metrics())
        }

    def _values(self) -> dict[str, Tensor]:
        metrics = self._metrics()
        synced = [metric._to_sync for metric in metrics]
        try:
            for metric in metrics:
                metric._to_sync = False  # `over_ranks` has brought the other ranks' states already
            return self._named_values()
        finally:
            for metric, before in zip(metrics, synced, strict=True):
                metric._to_sync = before

    def _named_values(self) -> dict[str, Tensor]:
        found: dict[str, Any] = {}
        for name, metric in self._parts:
            value = metric.compute()
            if name is not None and not isinstance(value, Mapping):
                found[name] = value
                continue
            for key, part in value.items():
                found[_plain_name(str(key), metric) if name is None else str(key)] = part
        return {name: torch.as_tensor(value) for name, value in found.items()}


def _sums(metric: Any) -> list[str]:
    """The states that are sums of one share per batch, in floating point."""
    from torchmetrics.utilities.data import dim_zero_sum

    if metric.full_state_update is not False:
        return []
    found = []
    for name, how in metric._reductions.items():
        start = metric._defaults[name]
        is_sum = how is dim_zero_sum and isinstance(start, Tensor) and start.is_floating_point()
        if is_sum and getattr(metric, name).numel() <= _APART and not bool(start.any()):
            found.append(name)
    return found


def _merged(metric: Any, states: list[dict[str, Any]]) -> dict[str, Any]:
    """The state of `metric` over all ranks, from that on each."""
    updates = sum(state["updates"] for state in states)
    # A rank without a batch has nothing to add; its empty lists have no shape either.
    states = [state for state in states if state["updates"]] or states[:1]
    in_turn = all(
        len(part) == state["updates"]
        for state in states
        for part in state["states"].values()
        if isinstance(part, list)
    )
    merged: dict[str, Any] = {}
    for name, how in metric._reductions.items():
        parts = [state["states"][name] for state in states]
        apart = [state.get("apart", {}).get(name) for state in states]
        if isinstance(parts[0], list):
            merged[name] = (
                interleaved(parts) if in_turn else [one for part in parts for one in part]
            )
        elif all(shares is not None for shares in apart):
            start = torch.zeros_like(parts[0])
            merged[name] = functools.reduce(operator.add, interleaved(apart), start)
        else:
            stacked = torch.stack(parts)
            merged[name] = stacked if how is None else how(stacked)
    return {"updates": updates, "states": merged}


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _plain_name(key: str, collection: Any) -> str:
    """A collection's key, which may have a prefix and a postfix, with class names in snake case."""
    for metric in collection.values():
        name = type(metric).__name__
        key = key.replace(name, snake_case(name))
    return key
