"""Checks of options' values; each function raises `ConfigError`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from trueloop import schedules
from trueloop.errors import ConfigError, nearest
from trueloop.lengths import parse_interval
from trueloop.tasks import limits
from trueloop.tasks.limits import check_range


def check_every(option: str, every: str | None) -> None:
    try:
        parse_interval(option, every)
    except ConfigError:
        _refuse_length(option, str(every), "updates", "'2 epochs' or '10 minutes'")


def check_length(option: str, length: str | None) -> None:
    try:
        if length is not None:
            schedules.parse_length(length)
    except ConfigError:
        _refuse_length(option, str(length), "epochs", "'300 updates' or '5%' of the run")


def _refuse_length(option: str, length: str, unit: str, others: str) -> NoReturn:
    """A length that is not understood, most often for want of its unit."""
    number = length.strip()
    if number.isdecimal() and int(number[:9]):
        raise ConfigError(f"{option}: {number} of what? write '{number} {unit}', {others}")
    raise ConfigError(f"{option} {length!r} is not understood: write '5 {unit}', {others}")


def above_0(option: str, value: float | None, most: float, example: str) -> None:
    check_range(option, value, 0, most, open_below=True, example=example)


def above_1(option: str, value: float) -> None:
    check_range(option, value, 1, limits.MOST_NORM, open_below=True, example="5.0")


def one_of(option: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise ConfigError(f"{option}: unknown {option[2:]} {value!r}: {nearest(value, known)}")
