"""Loops that are cut short after a few batches: time is measured, or a result is looked at."""

from __future__ import annotations

from trueloop.doctor.model.events import Event

FEW = 12
"""Turns, of all loops around an event taken together."""


def is_trial(event: Event) -> bool:
    """A count of the turns ends the loop over batches, and all loops around make few turns."""
    turn = event.turn
    if turn is None or turn.loop.cut_at is None:
        return False
    total = 1
    for each in event.turns:
        loop = each.loop
        count = loop.turns if loop.cut_at is None else loop.cut_at
        if not isinstance(count, int):
            return False
        total *= count
    return total <= FEW


def looks_at_few(event: Event) -> bool:
    """A count of the turns ends the loop over batches after a few, however often it is entered:
    pictures of the first ones, in every epoch."""
    cut_at = event.turn.loop.cut_at if event.turn is not None else None
    return cut_at is not None and cut_at <= FEW
