"""Learning rates that change between two steps of an optimizer."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING

from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.live.probes import parameter_stats
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Event
from trueloop.doctor.model.optimizer_events import RateSet

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context


class ChangedRates(Probe):
    """Compares the rates of sampled steps: rules know which schedules have stepped in between."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._rates = WeakMap[list[float]]()
        self._rested = WeakMap[bool]()

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        before, now = self._rates.get(optimizer), parameter_stats.rates(optimizer)
        if before == now:
            self._rested.put(optimizer, True)
            return
        self._rates.put(optimizer, now)
        if before is not None and len(before) == len(now):
            found = RateSet(
                optimizer=self.watcher.things.optimizer(optimizer),
                rested=self._rested.get(optimizer) is True,
            )
            self.watcher.measure(found.at(event))
