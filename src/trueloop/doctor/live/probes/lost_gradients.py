"""Gradients that are cleared by hand between `backward` and the step that should apply them."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.objects.manual_edits import is_zero
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.live.probes import parameter_stats
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.measurements import GradientsLost

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context
    from trueloop.doctor.model.events import Event

UPDATES = 3
"""In a row, before it is reported; and before an optimizer whose gradients are there is left
alone."""


@dataclass(eq=False)
class _Record:
    """The observations of one optimizer."""

    steps: int = 0
    lost: int = 0
    computed: bool = False
    """A backward since its last step has left gradients."""


class LostGradients(Probe):
    """`p.grad = None` and `p.grad.data.zero_()` show by their effect only: gradients that are there
    after `backward` are gone, or zero, at the step. Optimizers of the user's own may have taken
    them."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._records = WeakMap[_Record]()

    def after_backward(self, frame: FrameType) -> None:
        for optimizer in self.watcher.things.live_optimizers():
            record = self._records.get(optimizer)
            if record is not None and record.steps < UPDATES:
                record.computed = record.computed or _has_gradients(optimizer)

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        for other in self.watcher.things.live_optimizers():
            record = self._records.get(other)
            if record is not None and other is not optimizer:
                record.computed = False  # it may have applied them
        record = self._records.get(optimizer)
        if record is None:
            if not type(optimizer).__module__.startswith("torch.optim."):
                return
            record = _Record()
            self._records.put(optimizer, record)
        if record.steps >= UPDATES or parameter_stats.capturing():
            return
        computed, record.computed = record.computed, False
        if _has_gradients(optimizer):
            record.steps += 1
            record.lost = 0
        elif computed:
            record.lost += 1
            if record.lost == UPDATES:
                self.watcher.measure(
                    GradientsLost(optimizer=self.watcher.things.optimizer(optimizer)).at(event)
                )

    def unwatched(self) -> None:
        for optimizer in self.watcher.things.live_optimizers():
            record = self._records.get(optimizer)
            if record is not None:
                record.computed = False


def _has_gradients(optimizer: Optimizer) -> bool:
    """One is not zero: usually the first that is looked at."""
    gradients = (each.grad for each in inspection.parameters_of(optimizer))
    return any(each is not None and not is_zero(each) for each in gradients)
