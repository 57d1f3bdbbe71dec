"""A new optimizer over weights that a former one has trained, and that nothing has reset.

Every change in place counts up a tensor's version: a step by as much each time. If the version has
gone up by what the steps since it was looked at explain, nothing else has changed the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.measurements import WeightsKept

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context
    from trueloop.doctor.model.events import Event


@dataclass(eq=False)
class _Steps:
    """A parameter after a step."""

    version: int
    updates: int
    each: int | None = None
    """By how much a step counts up its version."""


class KeptWeights(Probe):
    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._seen = WeakMap[_Steps]()

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        for parameter in inspection.parameters_of(optimizer)[:1]:
            version, updates = autograd_graph.version(parameter), self.watcher.updates
            known = self._seen.get(parameter)
            if known is None:
                self._seen.put(parameter, _Steps(version, updates))
                continue
            if updates == known.updates + 1:
                known.each = version - known.version
            known.version, known.updates = version, updates

    def made(self, optimizer: Optimizer, frame: FrameType) -> None:
        held = inspection.parameters_of(optimizer)
        for parameter in held[:1]:
            known = self._seen.get(parameter)
            if known is None or not known.each or known.version < 0:
                return
            # The step that was seen last was counted once it was over.
            steps = self.watcher.updates - known.updates - 1
            grown = autograd_graph.version(parameter) - known.version
            if grown == known.each * steps and grown >= 0:
                models, _ = self.watcher.things.models_of(held)
                self.watcher.measure(WeightsKept(models=models))
