"""Facts that follow from others in one run: `a or b` from `a` and `b`, and the reverse; and the
side of a number that a quantity is on."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, NamedTuple

from trueloop.doctor.model.arithmetic import SIZE
from trueloop.doctor.static.interpreter.branches import limit_in
from trueloop.doctor.static.interpreter.option_defaults import ORDER

Limits = dict[str, list[tuple[Callable[[Any, Any], Any], float, bool]]]


class Junction(NamedTuple):
    """`a or b`, or `a and b`, of conditions that the source leaves open."""

    is_or: bool
    parts: tuple[tuple[str, bool], ...]
    """The key of each condition, and whether it is negated."""

    def known(self, decided: dict[str, bool]) -> bool | None:
        """Its truth, where what was decided about its parts is enough."""
        truths = [decided[key] != negated for key, negated in self.parts if key in decided]
        if self.is_or in truths:
            return self.is_or
        return None if len(truths) < len(self.parts) else not self.is_or

    def settle(self, fact: bool, decided: dict[str, bool], forced: Container[str]) -> None:
        """Decide the parts as well, where its truth says what each of them is."""
        for key, negated in self.parts if fact is not self.is_or else ():
            if key not in forced:
                decided.setdefault(key, fact != negated)


def note_limit(limits: Limits, key: str, fact: bool) -> None:
    """Remember that `n > 3` was decided, for what is asked about `n` later."""
    for sign, holds in ORDER.items():
        name, found, _ = key.rpartition(f" {sign} ")
        limit = limit_in(key, f"{name} {sign} ") if found else None
        if limit is not None and len(known := limits.setdefault(name, [])) < SIZE:
            known.append((holds, limit, fact))
