"""The learning-rate range test: which rates a model learns at, from one short training.

The rate grows exponentially from update to update while the loss is watched: it stays, falls, and
in the end diverges. Smith, "Cyclical learning rates for training neural networks", WACV 2017; the
exponential sweep, the smoothing and the end at four times the lowest loss are those of fast.ai's
`lr_find` and Lightning's `Tuner`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trueloop.errors import NonFiniteError, OutlierError
from trueloop.step import Step
from trueloop.tune.setup import Setup

LOWEST, HIGHEST = 1e-6, 10.0
FEWEST, MOST = 40, 300
"""Updates of a sweep: with fewer the curve is all noise, and more do not help."""
_DIVERGED = 4.0
"""Times the lowest smoothed loss, at which the sweep ends."""
_BETA = 0.9
"""Of the running mean that divergence is seen by."""
_WIDTH = 0.12
"""Standard deviation of the smoothing, in decades of the rate."""
_FALL = 0.05
"""A curve that falls by less than this share of its height does not count as falling."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A learning rate, and its place on the curve."""

    rate: float
    reason: str
    """In words, for people."""
    steepest: float
    """Where the smoothed loss falls most per decade of the rate."""
    lowest: float
    """Where the smoothed loss is lowest."""


@dataclass(frozen=True, kw_only=True)
class RangeTest:
    """The observations of a sweep: the rate and the loss of each update, and what follows from
    them."""

    rates: list[float]
    losses: list[float]
    smoothed: list[float]
    ended: str
    """`diverged`, `swept` (the whole range) or `out of time`."""
    diverged_at: float | None
    """The rate at which the loss had become four times its lowest, or was no longer finite."""
    suggestion: Suggestion | None
    """None where no rate can be recommended."""
    reason: str
    """Why that one, or why none."""


def sweep(
    setup: Setup,
    *,
    updates: int = 100,
    seconds: float | None = None,
    lowest: float = LOWEST,
    highest: float = HIGHEST,
) -> RangeTest:
    """Train `setup` (which must have no schedule) for `updates` updates, whose learning rate grows
    from `lowest` to `highest`, each parameter group's in proportion to its own.

    Ends early where the loss diverges, or after `seconds`. Reads each loss as it comes: on an
    accelerator every update waits.
    """
    groups = groups_of(setup.step)
    peak = max(start for _, start in groups)
    rates, losses = [], []
    mean = weight = 0.0
    least, ended, began = math.inf, "swept", time.monotonic()
    for rate in np.geomspace(lowest, highest, updates).tolist():
        if seconds is not None and time.monotonic() - began > seconds:
            ended = "out of time"
            break
        for group, start in groups:
            set_rate(group, rate * start / peak)
        try:
            loss = float(setup.update().loss)
        except (NonFiniteError, OutlierError):
            loss = math.nan
        rates.append(rate)
        losses.append(loss)
        mean, weight = _BETA * mean + (1 - _BETA) * loss, _BETA * weight + 1 - _BETA
        if not math.isfinite(loss) or (len(losses) > 10 and mean / weight > _DIVERGED * least):
            ended = "diverged"
            break
        least = min(least, mean / weight) if len(losses) > 5 else least
    return conclude(rates, losses, ended)


def groups_of(step: Step) -> list[tuple[dict[str, object], float]]:
    """The parameter groups of all optimizers, each with its learning rate as it is now."""
    groups = (group for optimizer in step.optimizers for group in optimizer.param_groups)
    return [(group, float(group["lr"])) for group in groups]


def set_rate(group: dict[str, object], rate: float) -> None:
    """Write a rate as the group has it: a tensor of a compiled or captured update is filled."""
    held = group["lr"]
    if hasattr(held, "fill_"):
        held.fill_(rate)
    else:
        group["lr"] = rate


def conclude(rates: Sequence[float], losses: Sequence[float], ended: str) -> RangeTest:
    """The conclusions from a sweep's rates and losses."""
    x, y = np.log10(np.array(rates, dtype=np.float64)), np.array(losses, dtype=np.float64)
    curve = smooth(x, y)
    found, reason = suggest(x, y, curve, ended)
    return RangeTest(
        rates=list(rates),
        losses=list(losses),
        smoothed=curve.tolist(),
        ended=ended,
        diverged_at=float(rates[-1]) if ended == "diverged" else None,
        suggestion=found,
        reason=reason,
    )


def smooth(x: Floats, y: Floats) -> Floats:
    """The local mean of the finite `y` with Gaussian weights over `x` (decades of the rate).

    A running mean would lag: its curve turns up only at rates at which the training has long
    diverged.
    """
    finite = np.isfinite(y)
    if not finite.any():
        return np.full_like(y, np.nan)
    gaps = np.diff(x)
    width = max(_WIDTH, 2.0 * float(gaps.mean()) if len(gaps) else 0.0)
    weights = np.exp(-0.5 * ((x[:, None] - x[None, finite]) / width) ** 2)
    smoothed: Floats = weights @ y[finite] / weights.sum(axis=1)
    return smoothed


def suggest(x: Floats, y: Floats, curve: Floats, ended: str) -> tuple[Suggestion | None, str]:
    """The rate of the steepest fall, but at least a tenth and at most a third of the rate with the
    lowest loss; `x` are the decades of the rates, `y` the losses and `curve` the smoothed ones.
    None, and why, without a fall.

    At the steepest fall the loss gets better fastest (Lightning's `suggestion`, fast.ai's `steep`),
    and next to the lowest one the training is about to become unstable. In a long sweep the model
    has learned most before the rates at which it would learn fastest, so that the steepest fall
    comes too early: from there a tenth of the lowest's is the better rule (fast.ai's `minimum`).
    """
    if len(x) < FEWEST // 2:
        return None, f"the loss was followed for {len(x)} updates only, too few to judge by"
    low = int(np.nanargmin(curve))
    start = float(np.nanmedian(curve[: max(3, len(curve) // 10)]))
    noise = float(np.nanmedian(np.abs(y - curve)))
    fall = start - float(curve[low])
    if low < 3 or fall < max(_FALL * abs(start), 3 * noise):
        return None, f"the loss fell nowhere by more than its noise ({fall:.3g} from {start:.3g})"
    slope = np.gradient(curve[: low + 1], x[: low + 1])
    steep = int(np.argmin(slope))
    steepest, lowest = 10.0 ** float(x[steep]), 10.0 ** float(x[low])
    rate = round_rate(min(max(steepest, lowest / 10), lowest / 3))
    reason = f"the loss falls fastest at {number(steepest)} and is lowest at {number(lowest)}: "
    if steepest > lowest / 3:
        reason += f"{number(rate)} is a third of that, away from where it turns up"
    elif steepest < lowest / 10:
        reason += f"{number(rate)} is a tenth of that, within the fall"
    else:
        reason += f"{number(rate)} is where it falls fastest"
    if ended == "diverged":
        reason += f"; it diverges at {number(10.0 ** float(x[-1]))}"
    return Suggestion(rate=rate, reason=reason, steepest=steepest, lowest=lowest), reason


def round_rate(rate: float) -> float:
    """Two digits: a range test is not more accurate."""
    return float(f"{rate:.1e}")


def number(rate: float) -> str:
    """A rate as people write it: 0.003, 2e-05."""
    return f"{float(f'{rate:.2g}'):g}"
