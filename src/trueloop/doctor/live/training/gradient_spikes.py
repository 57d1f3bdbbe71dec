"""A gradient that jumps far above its running level, and a loss that follows it: computed from
numbers only.

The gradient of one small parameter is followed update by update, the norm of all of them now and
then; if the small one is far above its level, all are looked at.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from trueloop.doctor.model.measurements import GradientJump

_EVERY = 32
"""Updates of a block."""
_SAMPLED = 4
"""Updates of which one is taken into the running level."""
_RARELY = 256
"""Updates between two looks at the norm of all gradients, once some are known."""
AFTER = 32
"""Updates that the loss is followed for."""
_AT_LEAST = 96
"""Updates before a level is known."""
_FACTOR = 30.0
"""The factor above the running level that makes a norm a spike."""
_TRIES = 8
_NEAR = 40
"""Updates before a jump in which the loss may rise already."""


@dataclass
class GradientSpike:
    """A spike of the gradient, and the losses since."""

    update: int
    norm: float
    level: float
    """Median of the norms before."""
    over: int
    """Updates that the level was taken over."""
    weights: float
    """Norm of all parameters, a while before."""
    moved: float
    """And right after the update."""
    losses: list[float]
    """Before, oldest first; the last is the one that this gradient is of."""
    begin: float
    """The loss in the first updates of all."""
    where: Any
    after: list[float] = field(default_factory=list)

    def measured(self, weights: float) -> GradientJump | None:
        """The change of the losses, and the norm of the parameters, which now is `weights`; None if
        a loss is not finite, or if there are too few."""
        before = self.losses[:-_NEAR]
        known = all(map(math.isfinite, [*self.losses, *self.after]))
        if len(before) < 24 or not self.after or not known:
            return None
        level, ceiling = median(before), max(before)
        if min(before) <= 0:
            return None
        early, late = self.after[:8], median(self.after[-8:])
        peak = max(self.after[:16])
        # Other data begin so: then it is the one update that must have torn the weights away.
        sudden = self.losses[-2] <= 1.5 * ceiling and self.losses[-1] > 3 * ceiling
        return GradientJump(
            update=self.update,
            norm=self.norm,
            level=self.level,
            over=self.over,
            weights=(self.moved if sudden else weights) / self.weights,
            before=level,
            ceiling=ceiling,
            begin=self.begin,
            late=late,
            above=sum(each > ceiling for each in early) / max(1, len(early)),
            peak=peak,
            within=self.after.index(peak) + 1,
            followed=len(self.after),
        )


class GradientSpikes:
    """The gradients and losses of one optimizer's updates."""

    def __init__(self) -> None:
        self.pending: GradientSpike | None = None
        self.begin = 0.0
        """The loss in the first updates."""
        self._begun = 0
        self._tries = 0
        self._forget()

    def _forget(self) -> None:
        """The level before a jump has ended."""
        self.losses: deque[float] = deque(maxlen=64 + _NEAR)
        self.limit = math.inf
        """The limit of the square of the small gradient's norm: a spike is above it."""
        self.due = 0
        """Update at which the norm of all gradients is asked for."""
        self._count = 0
        self._samples = 0
        self._level = 0.0
        """Running mean of the logarithms."""
        self._spread = 0.0
        self._block = 0.0
        self._largest = 0.0
        """Of all blocks of updates that are complete."""
        self._norms: deque[tuple[int, float]] = deque(maxlen=8)
        self._weights = 0.0

    @property
    def over(self) -> bool:
        """Nothing more is asked."""
        return self._tries >= _TRIES

    def trained(self, losses: list[float]) -> None:
        """The losses of updates, while no jump is followed."""
        assert self.pending is None
        self.losses += losses
        for value in losses[: 10 - self._begun]:
            self.begin += (value - self.begin) / (self._begun + 1)
            self._begun += 1

    def followed(self, value: float) -> GradientSpike | None:
        """The loss of an update after a jump; the jump, if that ends with it."""
        assert self.pending is not None
        self.pending.after.append(value)
        if len(self.pending.after) < AFTER and math.isfinite(value):
            return None
        return self.end()

    def end(self) -> GradientSpike | None:
        """The jump that is followed, if there is one: no more losses come."""
        pending, self.pending = self.pending, None
        if pending is not None:
            self._forget()
        return pending

    def usual(self, squares: list[float]) -> None:
        """The squares of the small gradient's norm, which are within the limit."""
        for square in squares:
            self._count += 1
            if square > self._block:
                self._block = square
            if self._count % _SAMPLED == 0 and square > 0.0:
                self._learn(math.log(square))

    def _learn(self, size: float) -> None:
        """The size of one gradient in some; what the next ones are compared with."""
        self._samples += 1
        share = 1.0 / min(self._samples, 32)
        away = size - self._level if self._samples > 1 else 0.0
        self._level = size if self._samples == 1 else self._level + away * share
        self._spread += (abs(away) - self._spread) * share
        if self._count % _EVERY == 0:
            self._largest, self._block = max(self._largest, self._block), 0.0
        if self._count >= _AT_LEAST:
            above = self._level + max(2 * math.log(_FACTOR), 8 * self._spread)
            self.limit = max(math.exp(min(above, 700.0)), 100 * self._largest)

    def sample(self, update: int, norm: float, weights: float) -> None:
        """The norms of all gradients and of all parameters, in an update as any other."""
        self._norms.append((update, norm))
        self._weights = weights
        self.due = update + (_EVERY if len(self._norms) < 3 else _RARELY)

    def follow(self, update: int, norm: float, weights: float, where: Any) -> bool:
        """The small gradient was a spike: so are all, and the losses will show more."""
        self._tries += 1
        norms = [each for _, each in self._norms]
        if len(norms) < 3:
            return False
        level = median(norms)
        if not norm > max(_FACTOR * level, 10 * max(norms)) or not level > 0:
            return False
        if not self._weights > 0:
            return False
        over = update - self._norms[0][0]
        losses = list(self.losses)
        self.pending = GradientSpike(
            update, norm, level, over, self._weights, weights, losses, self.begin, where
        )
        return True
