"""The space of a hyper-parameter search: which options are searched, and where."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trueloop.errors import ConfigError, nearest

_KEYS = ("low", "high", "log", "step")
_EXAMPLE = "{low: 1e-4, high: 1e-1, log: true}"
FIXED = frozenset({"task", "data", "run", "resume", "quiet", "monitor", "config", "print_config"})
"""Options that say what is compared, or where; none of them can be searched."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """Numbers from `low` to `high`, both included."""

    low: float
    high: float
    log: bool = False
    step: float | None = None

    @property
    def is_whole(self) -> bool:
        return all(isinstance(v, int) for v in (self.low, self.high, self.step or 1))

    def plain(self) -> dict[str, Any]:
        found: dict[str, Any] = {"low": self.low, "high": self.high}
        if self.log:
            found["log"] = True
        if self.step is not None:
            found["step"] = self.step
        return found

    def ends(self) -> list[Any]:
        return [self.low, self.high]


@dataclass(frozen=True, kw_only=True)
class Choices:
    """One of these values."""

    values: tuple[Any, ...]

    def plain(self) -> list[Any]:
        return list(self.values)

    def ends(self) -> list[Any]:
        return list(self.values)


Space = dict[str, Range | Choices]


def parse_space(
    content: Mapping[str, Any], source: str, known: Collection[str], stated: Collection[str]
) -> Space:
    """The space that a file called `source` describes: an option's name -> {low, high, log}, {low,
    high, step} or a list of choices.

    `known` are the names of the options of train, `stated` those that the user gave a value beside
    the file. Raises `ConfigError` naming the key.
    """
    if not content:
        raise ConfigError(f"{source} searches nothing: write e.g. lr: {_EXAMPLE}")
    space: Space = {}
    for key, value in content.items():
        name = key.strip().removeprefix("--").replace("-", "_")
        where = f"{source}: {key}"
        if name in FIXED:
            raise ConfigError(f"{where} cannot be searched: give it on the command line")
        if name not in known:
            raise ConfigError(f"{source}: unknown option {key!r}: {nearest(name, known)}")
        if name in space:
            raise ConfigError(f"{source}: {key!r} is given twice: leave one of them")
        if name in stated:
            raise ConfigError(
                f"{where} is searched, and --{name.replace('_', '-')} gives it one value: leave "
                "out one of them"
            )
        space[name] = _dimension(value, where)
    return space


def _dimension(value: Any, where: str) -> Range | Choices:
    if isinstance(value, list):
        return _choices(value, where)
    if isinstance(value, Mapping):
        return _range(value, where)
    raise ConfigError(f"{where}: {value!r} is one value: write a list of choices or {_EXAMPLE}")


def _choices(values: list[Any], where: str) -> Choices:
    if len(values) < 2:
        raise ConfigError(f"{where} has {len(values)} choices: write two or more")
    for value in values:
        if not isinstance(value, (str, int, float, bool, type(None))):
            raise ConfigError(f"{where}: the choice {value!r} is not a plain value: write text")
        if sum(value == other and type(value) is type(other) for other in values) > 1:
            raise ConfigError(f"{where}: the choice {value!r} is given twice: leave one of them")
    return Choices(values=tuple(values))


def _range(value: Mapping[str, Any], where: str) -> Range:
    for key in value:
        if key not in _KEYS:
            raise ConfigError(f"{where}: unknown key {key!r}: {nearest(str(key), _KEYS)}")
    for key in ("low", "high"):
        if key not in value:
            raise ConfigError(f"{where} has no {key!r}: write {_EXAMPLE}")
    low, high, step = (
        _number(value.get(key), f"{where}: {key}") for key in ("low", "high", "step")
    )
    log = value.get("log", False)
    if not isinstance(log, bool):
        raise ConfigError(f"{where}: log is {log!r}: write log: true")
    assert low is not None
    assert high is not None
    if not low < high:
        raise ConfigError(f"{where}: low {low:g} is not below high {high:g}: swap them")
    if log and low <= 0:
        raise ConfigError(f"{where}: a log range begins above 0, not at {low:g}: write low: 1e-5")
    if step is not None and (log or not 0 < step <= high - low):
        why = "log and step do not go together" if log else f"step {step:g} fits nowhere in it"
        raise ConfigError(f"{where}: {why}: leave out step")
    return Range(low=low, high=high, log=log, step=step)


def _number(value: Any, where: str) -> float | None:
    if value is None and where.endswith("step"):
        return None
    if isinstance(value, str):  # YAML 1.1 reads 1e-4 as text
        with suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError(f"{where} is {value!r}, not a number: write e.g. 0.001")
    return value


def plain_space(space: Space) -> dict[str, Any]:
    """The space as it would be written in a file."""
    return {name: dimension.plain() for name, dimension in space.items()}
