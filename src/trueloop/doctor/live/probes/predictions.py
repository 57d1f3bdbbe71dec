"""Whether a model's predictions differ from sample to sample."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.probes import parameter_stats
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Event, Loss
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import PredictionSpread
from trueloop.doctor.model.things import Model

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context

UPDATES = 20
_SAMPLES = 4
_SAME = 1e-6
"""Of the largest output: what differs by less is the same."""


@dataclass(eq=False)
class ConstantOutputs:
    """Updates in a row in which all samples got the same output."""

    count: int = 0
    update: int = -1
    reported: Location | None = None
    varies: bool = False


class Predictions(Probe):
    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._forwards: OrderedDict[int, tuple[Event, list[Any]]] = OrderedDict()
        self._rows: dict[Model, ConstantOutputs] = {}
        self._updates = 0

    def after_forward(self, module: nn.Module, given: Any, output: object, event: Event) -> None:
        if event.grad and module.training:
            inputs = [weakref.ref(each) for each in autograd_graph.tensors_in(given)]
            self._forwards[event.serial] = (event, inputs)
            while len(self._forwards) > 32:
                self._forwards.popitem(last=False)

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        self._updates += 1

    def unwatched(self) -> None:
        self._forwards.clear()

    def lost(self, given: dict[str, Any], loss: torch.Tensor, event: Event) -> None:
        assert isinstance(event, Loss)
        output = next(iter(given.values()), None)
        target = given.get("target")
        if not inspection.is_tensor(output) or not inspection.is_tensor(target):
            return
        thing = event.input
        if output.grad_fn is None or len(getattr(thing, "forwards", ())) != 1:
            return
        known = self._forwards.get(next(iter(thing.forwards)))
        if known is None or parameter_stats.capturing():
            return
        forward, inputs = known
        row = self._rows.setdefault(forward.model, ConstantOutputs())  # type: ignore[attr-defined]
        if row.varies or row.update == self._updates:
            return
        self._judge(row, (output, target), inputs, forward)

    def _judge(
        self, row: ConstantOutputs, given: tuple[Any, Any], inputs: list[Any], forward: Event
    ) -> None:
        same = _is_constant(given[0])
        if same is None:
            return
        if not same:
            row.varies = True
            if row.reported is not None:
                self._say(row, forward, varies=True)
            return
        alive = [each for each in (reference() for reference in inputs) if each is not None]
        if not any(_differs(each) for each in alive) or not _differs(given[1]):
            return
        row.update = self._updates
        row.count += 1
        if row.count == UPDATES:
            row.reported = forward.place
            self._say(row, forward, varies=False)

    def _say(self, row: ConstantOutputs, forward: Any, *, varies: bool) -> None:
        spread = PredictionSpread(
            model=forward.model, varies=varies, updates=row.count, spelled=forward.spelled
        ).at(forward)
        spread.place = row.reported or forward.place
        self.watcher.measure(spread)


def _is_constant(output: torch.Tensor) -> bool | None:
    """All samples got the same; None if there are too few to decide."""
    values = parameter_stats.local(output)
    if values.dim() == 0 or len(values) < _SAMPLES or not values.is_floating_point():
        return None
    spread = (values.amax(0) - values.amin(0)).max()
    largest, spread = torch.stack((values.abs().max(), spread)).tolist()
    if not largest < float("inf"):
        return None
    return bool(spread <= _SAME * largest)


def _differs(tensor: torch.Tensor) -> bool:
    values = parameter_stats.local(tensor)
    if values.dim() == 0 or len(values) < _SAMPLES:
        return False
    return bool((values != values[:1]).any())
