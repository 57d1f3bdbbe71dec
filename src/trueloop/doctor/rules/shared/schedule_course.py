"""How a schedule ran: the learning rates that it gave in a run that was watched to its end."""

from __future__ import annotations

from typing import NamedTuple

from trueloop.doctor.model.things import Scheduler

_NOTHING = 1e-5
"""Share of its highest value below which nothing is left of a learning rate."""
_FEW = 40
"""A run with fewer calls of `step()` shows nothing."""
_WAKES = 8
"""Calls between samples that are looked at, before only those are whose number is a power of 2."""


class ScheduleCourse(NamedTuple):
    """The calls of `scheduler.step()` in a run, and the learning rates after them."""

    calls: int
    rates: list[tuple[int, float]]
    """After so many calls; the first is that before all of them."""

    def gone_after(self) -> int | None:
        """The calls after which nothing is left of the learning rate, where at least half of the
        run comes after that."""
        peak, gone = 0.0, None
        for call, rate in self.rates:
            peak = max(peak, rate)
            if rate > _NOTHING * peak:
                gone = None
            elif gone is None:
                gone = call
        if gone is None or not gone or self.calls < _FEW or 2 * gone > self.calls:
            return None
        return gone

    def warm_up(self) -> float | None:
        """The calls that a warm-up to the whole learning rate (1.0) takes, where it rises in equal
        steps through all of the run; rates are shares of it."""
        steps = [
            (after - before) / (second - first)
            for (first, before), (second, after) in zip(
                self.rates[1:], self.rates[2:], strict=False
            )
        ]
        if len(steps) < 3 or min(steps) <= 0 or max(steps) - min(steps) > 1e-3 * max(steps):
            return None
        return 1 / steps[0]


def course_of(scheduler: Scheduler) -> ScheduleCourse | None:
    """The course of a schedule; None where its position was set, or no run was watched."""
    seen = scheduler.rates
    if len(seen) < 2 or seen[0][0] != 0:
        return None
    between = scheduler.calls_between_samples
    woken = min(between, _WAKES) + max(0, between.bit_length() - _WAKES.bit_length())
    calls = scheduler.sampled_calls + between - woken
    positions = [position for position, _ in seen]
    if positions != sorted(set(positions)) or not positions[-1] <= calls:
        return None
    if not between and positions[-1] != calls:
        return None
    return ScheduleCourse(calls, seen)
