"""Where the time of an update goes, as a table with bars and as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueloop.doctor.report.terminal import Paint, counted
from trueloop.doctor.rules.shared.timings import ENOUGH, duration, percent

if TYPE_CHECKING:
    from trueloop.doctor.live.timing.step_timing import Speed

WORDS = {
    "data": "waiting for data",
    "transfer": "copying to the GPU",
    "forward": "forward",
    "loss": "loss",
    "backward": "backward",
    "optimizer": "optimizer",
    "scheduler": "scheduler",
    "rest": "the rest",
}
_BAR = 30
"""Columns of a bar for the whole."""
_NEGLIGIBLE = 0.005
LONG = 5.0
"""Seconds of training from which on the table is shown unasked."""


def is_worth_showing(speed: Speed) -> bool:
    """Enough was measured of a training that lasts."""
    return speed.updates >= ENOUGH and speed.lasted >= LONG


def as_table(speed: Speed, updates: int, paint: Paint) -> str:
    """A line for each part that takes any time, with its share as a bar, and an empty line.

    Args:
        updates: steps of optimizers in the whole run.
    """
    of = f"{speed.updates:,} of {counted(updates, 'update')} measured"
    lines = [paint("place", f"an update takes {duration(speed.seconds)}") + f"  ({of})"]
    width = max(map(len, WORDS.values()))
    for part, seconds in speed.parts.items():
        share = speed.share(part)
        if share < _NEGLIGIBLE and part != "rest":
            continue
        bar = "#" * round(_BAR * share)
        line = f"  {WORDS[part]:{width}}  {duration(seconds):>6}  {percent(share):>4}  {bar}"
        lines.append(line.rstrip())
    if speed.evaluation_share >= _NEGLIGIBLE:
        lines.append(
            f"  outside of updates: {percent(speed.evaluation_share)} of the time is evaluation"
            f" ({duration(speed.evaluation)} in total)"
        )
    return "\n".join(lines) + "\n"


def as_object(speed: Speed | None) -> dict[str, Any] | None:
    """The same in seconds and shares; None if nothing was measured."""
    if speed is None:
        return None
    return {
        "measured": speed.updates,
        "device": speed.device,
        "seconds": round(speed.seconds, 9),
        "parts": {
            part: {"seconds": round(seconds, 9), "share": round(speed.share(part), 4)}
            for part, seconds in speed.parts.items()
        },
        "evaluation": {
            "seconds": round(speed.evaluation, 6),
            "share": round(speed.evaluation_share, 4),
        },
    }
