"""The conclusions of a run from its decisions: `a or b` from `a` and `b`, and the reverse; and
limits of a quantity from comparisons with numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from typing import Any, NamedTuple

from trueloop.doctor.model.arithmetic import SIZE
from trueloop.doctor.static.interpreter.branches import limit_in
from trueloop.doctor.static.interpreter.option_defaults import ORDER

Limits = dict[str, list[tuple[Callable[[Any, Any], Any], float, bool]]]


class Junction(NamedTuple):
    """`a or b`, or `a and b`, of conditions that the source leaves open."""

    decisive: bool
    """The truth of one part that decides the whole: True for `or`, False for `and`."""
    parts: tuple[tuple[str, bool], ...]
    """The key of each condition, and whether it is negated."""

    def known(self, decided: dict[str, bool]) -> bool | None:
        """Its truth, as far as the run has decided its parts; None while it is open."""
        outcomes = [decided[key] != negated for key, negated in self.parts if key in decided]
        if any(each is self.decisive for each in outcomes):
            return self.decisive
        return None if len(outcomes) < len(self.parts) else not self.decisive

    def settle(self, fact: bool, decided: dict[str, bool], forced: Container[str]) -> None:
        """Decide the parts too, if the truth of the whole says what each of them is."""
        for key, negated in self.parts if fact is not self.decisive else ():
            if key not in forced:
                decided.setdefault(key, fact != negated)


def note_limit(limits: Limits, key: str, fact: bool) -> None:
    """Remember that `n > 3` was decided, for what is asked about `n` later."""
    for sign, holds in ORDER.items():
        name, found, _ = key.rpartition(f" {sign} ")
        limit = limit_in(key, f"{name} {sign} ") if found else None
        if limit is not None and len(known := limits.setdefault(name, [])) < SIZE:
            known.append((holds, limit, fact))


def limited(key: str, forced: dict[str, bool], decided: dict[str, bool]) -> bool | None:
    """The truth of `n > 1` in a run that was asked to take `n` for 1, or that has found it to be
    neither 0 nor 1: what is compared with one of these counts something, and is larger. And of
    `n == 1` where it is more than 0, and not more than 1."""
    one = key.removesuffix(" == 1")
    if one != key and decided.get(f"{one} > 0") and decided.get(f"{one} > 1") is False:
        return True
    for sign, holds in ORDER.items():
        name, found, _ = key.rpartition(f" {sign} ")
        limit = limit_in(key, f"{name} {sign} ") if found else None
        if limit is None:
            continue
        for other, fact in forced.items():
            number = limit_in(other, f"{name} == ")
            if fact and number is not None:
                return bool(holds(number, limit))
        for number in (0, 1):
            alike = holds(number + 1, limit) == holds(math.inf, limit)
            if alike and decided.get(f"{name} == {number}") is False:
                return bool(holds(math.inf, limit))
    return None
