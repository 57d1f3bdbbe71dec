"""From the catalogue to the detectors."""

from __future__ import annotations

import importlib
from functools import cache

from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.catalogue import ENTRIES, Entry


def rules_for(where: str) -> list[type[Rule]]:
    """The rules that are seen `where`: `S` in source, `L` live."""
    return [load(entry) for entry in ENTRIES if where in entry.seen]


@cache
def load(entry: Entry) -> type[Rule]:
    """The detector of one rule."""
    module = importlib.import_module(f"trueloop.doctor.rules.{entry.module}")
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and getattr(value, "code", None) == entry.code
    ]
    assert len(found) == 1, f"{entry.module} must contain the one rule {entry.code}"
    rule: type[Rule] = found[0]
    return rule
