"""What a set of metrics is, and the exact sums that the sets are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from trueloop.ranks import sum_over_ranks


class MetricSet(ABC):
    """Metrics that are measured together. For one of your own, define the first three methods."""

    @abstractmethod
    def reset(self) -> None:
        """Forget every batch."""

    @abstractmethod
    def update(self, outputs: Any, targets: Any) -> None:
        """Take in one batch: the model's raw outputs and the targets, as the loss gets them."""

    @abstractmethod
    def compute(self) -> dict[str, float]:
        """Name to value over all batches since `reset`; NaN where a value is undefined."""

    def details(self) -> dict[str, Any]:
        """What is no single number, as plain lists and dicts."""
        return {}

    def to(self, device: torch.device | str) -> MetricSet:
        """Keep the sums on `device`; `update` also follows the device of what it is given."""
        return self

    def state_dict(self) -> dict[str, Any]:
        """What the batches since `reset` have left, as plain data and tensors, some of them live.

        `fit` saves it when the set is one of `train_metrics`, which are measured over an epoch in
        the midst of which a run may stop. Define it with `load_state_dict`, or leave out both.
        """
        raise NotImplementedError

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        raise NotImplementedError

    @property
    def is_resumable(self) -> bool:
        """Whether the set defines `state_dict` and `load_state_dict`."""
        kind = type(self)
        return (
            kind.state_dict is not MetricSet.state_dict
            and kind.load_state_dict is not MetricSet.load_state_dict
        )


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
        """The sum over all ranks, float64, on the CPU."""
        return sum_over_ranks(self._sums[name]).cpu().double()


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
