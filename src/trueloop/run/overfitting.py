"""Overfitting in the curves, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from trueloop.formatting import number, percent

_FEWEST = 5
"""Epochs below which a curve says nothing."""
_WINDOW = 3
"""Epochs of the running median, at the least."""
_RISE = 0.10
"""A validation loss this much above its minimum counts as risen."""
_GAIN = 0.02
"""A loss that fell this much counts as still falling."""


def overfitting(evals: Sequence[dict[str, Any]], unit: str = "epoch") -> tuple[str, str]:
    """A run's status and a sentence about it, from its evaluations ("train_loss", "val_loss").

    The rule: smooth the validation loss by a running median (of a fifth of the run, at least
    three epochs), so that one lucky or bad epoch decides nothing. It has risen if it ends more
    than 10% above the lowest point of that curve, and by more than twice the usual change from one
    epoch to the next (else the rise is noise). If the training loss kept falling meanwhile, the
    run is "overfitting" since the epoch with the lowest validation loss; if that rose too, it is
    "unstable". Otherwise it is "not overfitting", with a word on whether more epochs
    may help. "diverged" if the last validation loss is not finite; "no validation" without
    validation losses; "too short to say" with fewer than five.

    `unit` is what evaluations are named by: the `epoch` that each ends, or its `update`.
    """
    scored = [line for line in evals if isinstance(line.get("val_loss"), (int, float))]
    if not scored:
        return "no validation", "No validation loss was measured, so overfitting cannot be seen."
    if not math.isfinite(scored[-1]["val_loss"]):
        number, line = next(
            (k, e) for k, e in enumerate(scored, 1) if not math.isfinite(e["val_loss"])
        )
        place = number if unit == "epoch" else line[unit]
        return "diverged", f"The validation loss is not finite from {unit} {place:,} on."
    scored = [line for line in scored if math.isfinite(line["val_loss"])]
    if len(scored) < _FEWEST:
        what = "epoch" if unit == "epoch" else "evaluation"
        return "too short to say", (
            f"{len(scored)} {what}{'s' * (len(scored) > 1)} with a validation loss "
            f"{'are' if len(scored) > 1 else 'is'} too few to say whether the run overfits."
        )
    return _sentence(scored, unit)


def _sentence(scored: list[dict[str, Any]], unit: str) -> tuple[str, str]:
    losses = [float(line["val_loss"]) for line in scored]
    lowest = min(range(len(losses)), key=losses.__getitem__)
    place = f"{unit} {int(scored[lowest].get(unit, lowest + 1)):,}"
    width = max(_WINDOW, len(losses) // 5)
    smooth = [median(losses[k : k + width]) for k in range(len(losses) - width + 1)]
    steps = [abs(b - a) for a, b in pairwise(losses[min(lowest, len(losses) // 2) :])]
    noise = median(steps)
    rise = smooth[-1] - min(smooth)
    share = _share(smooth[-1], losses[lowest])
    if _share(smooth[-1], min(smooth)) <= _RISE or rise <= 2 * noise:
        return "not overfitting", _steady(scored, losses, lowest, place, share)
    train = _train_change(scored, lowest)
    how = f"The validation loss rose {_times(share)} its minimum at {place}"
    if train is None:
        return "overfitting", (
            f"{how}: overfitting since {place}, by all appearances "
            "(no training loss was logged to compare with)."
        )
    if train < 0:
        return "overfitting", (
            f"{how} while the training loss kept falling: overfitting since {place}."
        )
    return "unstable", (
        f"{how}, and the training loss did not fall either: that is not overfitting but unstable "
        "training; a lower learning rate or clipping may help."
    )


def _share(end: float, low: float) -> float:
    """How far `end` is above `low`, relative to it."""
    return (end - low) / abs(low) if low else (0.0 if end <= low else math.inf)


def _steady(
    scored: list[dict[str, Any]], losses: list[float], best: int, place: str, share: float
) -> str:
    """The sentence for a run that does not overfit."""
    before, tail = median(losses[-2 * _WINDOW : -_WINDOW]), median(losses[-_WINDOW:])
    by_epochs, gap = place.startswith("epoch"), ""
    train = scored[-1].get("train_loss")
    if isinstance(train, (int, float)) and math.isfinite(train):
        gap = f" (at the end {number(losses[-1])}; training {number(train)})"
    if best >= len(losses) - 2 and before - tail > _GAIN * abs(before):
        more = "epochs" if by_epochs else "updates"
        return f"The validation loss was still falling at the end{gap}: more {more} may help."
    if best == len(losses) - 1:
        last = "epoch" if by_epochs else "evaluation"
        return f"The validation loss was lowest in the last {last}{gap}."
    if share < 0.005:
        return f"The validation loss stayed at its minimum, reached at {place}{gap}."
    if share > _RISE:
        return (
            f"The validation loss ended {percent(share)} above its minimum at {place}, "
            f"no more than it moves from {'epoch to epoch' if by_epochs else 'one to the next'} "
            f"anyway{gap}."
        )
    return f"The validation loss ended within {percent(share)} of its minimum at {place}{gap}."


def _train_change(scored: list[dict[str, Any]], best: int) -> float | None:
    """How much the training loss changed from the best epoch to the end; None if not logged."""
    losses = [line.get("train_loss") for line in scored[best:]]
    finite = [v for v in losses if isinstance(v, (int, float)) and math.isfinite(v)]
    if len(finite) < 2:
        return None
    return median(finite[-_WINDOW:]) - finite[0]


def _times(share: float) -> str:
    """A rise in words: "18% from", or "to 3.2 times" where a percentage would be unreadable."""
    return f"{percent(share)} from" if share < 2 else f"to {1 + share:.1f} times"
