"""Which updates are sampled.

The first ones are sampled whole, then a few turns of each loop that is entered, after each switch
of a mode, and ever more rarely in between: rules need the pattern of a loop, not each of its
repetitions.
"""

from __future__ import annotations

from collections import Counter

from trueloop.doctor.live.hub import Hub
from trueloop.doctor.live.sampling_budget import Budget

FIRST = 50
"""Updates that are sampled from the beginning."""
AFTER = 4
"""Turns that are sampled after a loop is entered or a mode is switched."""
AGAIN = 2
"""The same, where nothing has happened but that many updates have gone by."""


class SamplingSchedule:
    """Switches `hub.sampling`, and counts the updates.

    Args:
        limit: watch so many updates and then take every hook off; None: all.
    """

    def __init__(self, hub: Hub, limit: int | None) -> None:
        self._hub = hub
        self.limit = limit
        self.compiled_updates = 0
        """Updates that were one compiled graph each."""
        self.next_at = 2 * FIRST
        """Update at which sampling begins again, whatever happens."""
        self._left = FIRST
        """Turns that are still sampled."""
        self._budget = Budget()
        self._turned_at = 0
        self._reasons: Counter[object] = Counter()
        hub.sample = self.begin

    def begin(self, turns: int = AFTER, why: object = None) -> None:
        """Sample the next turns; for one reason ever more rarely."""
        hub = self._hub
        if not hub.active:
            return
        if why is not None:
            self._reasons[why] += 1
            count = self._reasons[why]
            if count > 8 and count & (count - 1):
                return
        self._left = max(self._left, turns)
        hub.unsampled.leave()
        hub.sampling = True
        hub.refresh_call_patch()

    def updated(self) -> None:
        """An optimizer has stepped; called for every update, and guarded by who calls it."""
        hub = self._hub
        if not hub.active:
            return
        hub.updates += 1
        if hub.sampling:
            self._budget.looked(hub.updates)
        hub.update_ended()
        if self.limit is not None and hub.updates >= self.limit:
            self._end()
            hub.cut = True
            hub.closes()
        elif hub.updates >= self.next_at:
            self.next_at = self._budget.next(self.next_at)
            self.begin(turns=AGAIN)
        elif hub.sampling and hub.updates > self._turned_at + AFTER:
            self._count_turn()  # of a loop that cannot be seen: its code has no file
        hub.unsampled.begin()

    def end_after_next_update(self) -> None:
        """Take all hooks off at the next update."""
        self._hub.unsampled.leave()
        self.limit = self._hub.updates + 1

    def compiled_update(self, updated: bool) -> None:
        """From here on nothing is concluded from what has not been seen."""
        if not self._hub.active:
            return
        self._end()
        if updated:
            self.compiled_updates += 1
            self.updated()

    def turned(self) -> None:
        self._turned_at = self._hub.updates
        self._count_turn()

    def _count_turn(self) -> None:
        self._left -= 1
        if self._left < 0 and self._hub.updates >= FIRST:
            self._end()

    def _end(self) -> None:
        """Nothing is seen from here on: what was open may continue in any way."""
        if self._hub.sampling:
            self._hub.sampling = False
            self._hub.sampling_ended()
