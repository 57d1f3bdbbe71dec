"""When measured times are worth a word."""

from __future__ import annotations

from trueloop.doctor.model.speed_measurements import TimedUpdates

ENOUGH = 20
"""Updates that must have been measured."""
_SHORTEST = 2e-4
"""Seconds of an update: shorter ones are over soon, whatever they spend their time on."""


def counts(updates: TimedUpdates) -> bool:
    """There are enough of them, of a training that lasts, with updates that take their time."""
    lasts = updates.lasted >= updates.least
    return lasts and updates.number >= ENOUGH and updates.seconds >= _SHORTEST


def duration(seconds: float) -> str:
    """`41 ms`, `0.3 ms`, `1.2 s`: two digits."""
    if seconds >= 9.95:
        return f"{seconds:.0f} s"
    if seconds >= 0.9995:
        return f"{seconds:.1f} s"
    milliseconds = seconds * 1e3
    if milliseconds >= 9.95:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds:.1f} ms" if milliseconds >= 0.995 else f"{milliseconds:.2g} ms"


def percent(share: float) -> str:
    """`38%`."""
    return f"{share:.0%}"
