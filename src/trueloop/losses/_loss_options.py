"""Options of losses, checked as those of `trueloop._options` are."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from trueloop._options import is_integer, number, positive, shown
from trueloop.errors import ConfigError


def two_shares(option: str, values: Any) -> tuple[float, float]:
    """Two numbers from 0 on, not both 0."""
    if isinstance(values, (list, tuple)) and len(values) == 2:
        first, second = (number(option, value) for value in values)
        if min(first, second) >= 0 and max(first, second) > 0:
            return first, second
    raise ConfigError(
        f"{option}={shown(values)} must be two numbers of at least 0: write {option}=(1.0, 1.0)"
    )


def class_count(task: str, classes: Any, *, least: int, most: int | None = None) -> int | None:
    if classes is None:
        return None
    if not is_integer(classes) or classes < least:
        raise ConfigError(
            f"task {task!r} cannot have classes={shown(classes)}: write an integer of at least "
            f"{least}, or leave classes out"
        )
    if most is not None and classes > most:
        raise ConfigError(
            f"task {task!r} cannot have classes={classes}: "
            + ("leave classes out" if most == 0 else "write the task 'multiclass'")
        )
    return int(classes)


def class_index(value: Any) -> int:
    """A class index, or the negative number that marks an ignored target."""
    if not is_integer(value):
        raise ConfigError(
            f"ignore_index={shown(value)} is not a class index: write e.g. ignore_index=255"
        )
    return int(value)


class Weights:
    """Positive weights kept as Python floats, and as a tensor where the outputs last were."""

    def __init__(self, option: str, values: Any, *, length: int | None = None) -> None:
        if isinstance(values, (Tensor, np.ndarray)):
            values = values.tolist()
        self.single = not isinstance(values, (list, tuple))
        listed = [values] if self.single else list(values)
        self.values = [positive(option, value) for value in listed]
        self._option = option
        self._tensor: Tensor | None = None
        if length is not None and not self.single:
            self.check_length(length)

    def check_length(self, classes: int) -> None:
        if not self.single and len(self.values) != classes:
            raise ConfigError(
                f"{self._option} has {len(self.values)} entries for {classes} classes: "
                "write one weight per class"
            )

    def on(self, outputs: Tensor) -> Tensor:
        """The weights on the device and in the dtype of (wide) outputs."""
        kept = self._tensor
        if kept is None or kept.device != outputs.device or kept.dtype != outputs.dtype:
            values = self.values[0] if self.single else self.values
            kept = torch.tensor(values, dtype=outputs.dtype, device=outputs.device)
            self._tensor = kept
        return kept

    def __repr__(self) -> str:
        return repr(self.values[0] if self.single else self.values)


def class_weights(values: Any, length: int | None) -> Weights | None:
    """One weight per class, or None."""
    if values is None:
        return None
    weights = Weights("class_weights", values, length=length)
    if weights.single:
        raise ConfigError(
            f"class_weights={shown(values)} is not a list: write one weight per class"
        )
    return weights


def pos_weight(values: Any, length: int | None) -> Weights | None:
    """One weight for all labels, or one for each; or None."""
    return None if values is None else Weights("pos_weight", values, length=length)
