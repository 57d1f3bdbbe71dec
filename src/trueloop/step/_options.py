"""Options of losses: each function returns the value that it was given, or raises `ConfigError`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trueloop.errors import ConfigError


def number(option: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError(f"{option}={value!r} is no number: write e.g. {option}=1.0")
    return float(value)


def positive(option: str, value: Any) -> float:
    if number(option, value) <= 0:
        raise ConfigError(f"{option}={value!r} must be above 0: write e.g. {option}=1.0")
    return float(value)


def share(option: str, value: Any, *, below_one: bool = False) -> float:
    if not 0 <= number(option, value) <= 1 or (below_one and value == 1):
        limit = "below 1" if below_one else "1"
        raise ConfigError(f"{option}={value!r} must be from 0 to {limit}: write e.g. {option}=0.1")
    return float(value)


def two_shares(option: str, values: Any) -> tuple[float, float]:
    """Two numbers from 0 on, not both 0."""
    if isinstance(values, (list, tuple)) and len(values) == 2:
        first, second = (number(option, value) for value in values)
        if min(first, second) >= 0 and max(first, second) > 0:
            return first, second
    raise ConfigError(
        f"{option}={values!r} must be two numbers from 0 on: write {option}=(1.0, 1.0)"
    )


def choice(option: str, value: Any, known: Sequence[str]) -> str:
    if value not in known:
        listed = " or ".join(repr(name) for name in known)
        raise ConfigError(f"{option}={value!r} is unknown: write {listed}")
    return str(value)


def class_count(task: str, classes: Any, *, least: int, most: int | None = None) -> int | None:
    if classes is None:
        return None
    if isinstance(classes, bool) or not isinstance(classes, int) or classes < least:
        raise ConfigError(f"task {task!r} with classes={classes!r}: write {least} or more")
    if most is not None and classes > most:
        raise ConfigError(
            f"task {task!r} has no {classes} classes: "
            + ("leave classes out" if most == 0 else "write the task 'multiclass'")
        )
    return classes


def class_index(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"ignore_index={value!r} is no class index: write e.g. ignore_index=255")
    return value


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
        raise ConfigError(f"class_weights={values!r} is no list: write one weight per class")
    return weights


def pos_weight(values: Any, length: int | None) -> Weights | None:
    """One weight for all labels, or one for each; or None."""
    return None if values is None else Weights("pos_weight", values, length=length)
