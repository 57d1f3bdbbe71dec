"""Values that come out of a checkpoint's file."""

from __future__ import annotations

from trueloop.doctor.model.known_values import Unknown
from trueloop.doctor.model.things import Checkpoint


def checkpoint_of(value: object, depth: int = 6) -> Checkpoint | None:
    """The file's contents that a value was read from."""
    if isinstance(value, Checkpoint):
        return value
    if depth == 0 or not isinstance(value, Unknown):
        return None
    for part in value.of:
        found = checkpoint_of(part, depth - 1)
        if found is not None:
            return found
    return None
