"""Checks of options' values; each function raises `ConfigError`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, NoReturn

from trueloop import schedules
from trueloop.errors import ConfigError, nearest
from trueloop.lengths import parse_interval
from trueloop.option import facts_of
from trueloop.tasks import limits
from trueloop.tasks.limits import check_range

OVER = ("finished", "stopped early")
"""The status of a run that has nothing left to do."""
MOST_TRAININGS = 1000
"""Folds or repeats; more are a slip of the finger."""


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


def check_folds(folds: int | None, fold: int | None, repeats: int | None) -> None:
    check_range("--folds", folds, 2, MOST_TRAININGS, unit="folds", example=5)
    check_range("--repeats", repeats, 1, MOST_TRAININGS, unit="trainings", example=5)
    if fold is None:
        return
    if folds is None or repeats is not None:
        raise ConfigError(
            f"--fold {fold} names one fold of --folds, and of one training: write --folds 5 "
            "--fold 1, without --repeats"
        )
    check_range("--fold", fold, 1, folds, example=1)


def above_0(option: str, value: float | None, most: float, example: str) -> None:
    check_range(option, value, 0, most, open_below=True, example=example)


def above_1(option: str, value: float) -> None:
    check_range(option, value, 1, limits.MOST_NORM, open_below=True, example="5.0")


def check_choices(options: Any) -> None:
    """Refuse a word that is not among the `choices` of its field, in a dataclass of options."""
    for field in dataclasses.fields(options):
        facts, value = facts_of(field), getattr(options, field.name)
        if facts is None or _are_patterns(facts.choices):
            continue
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str) and word not in facts.choices:
                option = "--" + field.name.replace("_", "-")
                hint = nearest(word, facts.choices)
                raise ConfigError(f"{option}: unknown {option[2:]} {word!r}: {hint}")


def _are_patterns(choices: Iterable[str]) -> bool:
    """Whether one of them is to be filled in ("cuda:N"), or there are none."""
    words = list(choices)
    return not words or any(word != word.lower() for word in words)
