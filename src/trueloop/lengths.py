"""Lengths and intervals as the user writes them: "500 updates", "1 epoch", "10 minutes", "5%"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from trueloop.errors import ConfigError

UNITS = ("updates", "samples", "tokens", "epochs", "minutes")
"""The units of a run's intervals."""

LENGTHS = ("epochs", "updates", "tokens")
"""The units of a run's length."""

_LENGTH = re.compile(r"(\d[\d_]*(?:\.\d+)?(?:e\d+)?|\.\d+) ?(%|[a-z]*)")


def parse_amount(text: str) -> tuple[float, str] | None:
    """(number, unit) of a text such as "10_000 samples", "1e6 tokens" or "5%"; None where it is not
    a number from 0 on with at most one word after it.

    The unit is one of `UNITS`, "share" for a percentage (the number is then the share), "" where
    there is none, or the word itself where it is not known.
    """
    found = _LENGTH.fullmatch(" ".join(text.lower().split()))
    if found is None:
        return None
    number, word = float(found[1].replace("_", "")), found[2]
    if word == "%":
        return number / 100, "share"
    return number, f"{word}s" if f"{word}s" in UNITS else word


@dataclass(frozen=True)
class Interval:
    """Every so many updates, samples, tokens, epochs or minutes of a run, counted across epochs.

    Attributes:
        amount: a whole number above 0; of minutes any number above 0.
        unit: one of `UNITS`.
    """

    amount: float
    unit: str

    def __str__(self) -> str:
        shown = f"{self.amount:_}" if isinstance(self.amount, int) else f"{self.amount:g}"
        return f"{shown} {self.unit[:-1] if self.amount == 1 else self.unit}"


def parse_interval(option: str, value: Any) -> Interval | None:
    """The interval that `option` asks for; None for None. Raises `ConfigError` for anything
    else."""
    if value is None or isinstance(value, Interval):
        return value
    examples = "'500 updates', '10_000 samples', '1_000_000 tokens', '1 epoch' or '10 minutes'"
    found = parse_amount(value) if isinstance(value, str) else None
    if found is not None and not found[1]:
        raise ConfigError(f"{option}={value!r}: {value.strip()} of what? write {examples}")
    if isinstance(value, int) and not isinstance(value, bool):
        raise ConfigError(f"{option}={value}: {value} of what? write {examples}")
    amount, unit = found or (0.0, "")
    if unit not in UNITS or amount <= 0 or (unit != "minutes" and amount % 1):
        raise ConfigError(f"{option}={value!r} is not understood: write {examples}")
    return Interval(amount if unit == "minutes" else int(amount), unit)
