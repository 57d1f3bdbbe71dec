"""Layers that are created again for each batch."""

from __future__ import annotations

import weakref
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.live.probes import parameter_stats
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Event
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import LayerMadeAgain

if TYPE_CHECKING:
    from trueloop.doctor.live.context import Context

_UPDATES = 3


class LayersMadeAgain(Probe):
    """Counts the updates in which a layer that was never called before is called, by the place
    where such layers are created."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._known: WeakMap[bool] = WeakMap()
        self._fresh: list[tuple[weakref.ref[torch.Tensor], Location, str]] = []
        self._updates: dict[Location, set[int]] = {}

    def entered(self, module: nn.Module, given: object, outer: list[Any]) -> None:
        if self._known.get(module) is not None:
            return
        self._known.put(module, True)
        if not torch.is_grad_enabled():
            return
        registrations = self.watcher.registrations
        if registrations.loaded.get(module) is not None:
            return
        trained = [p for p in module._parameters.values() if p is not None and p.requires_grad]
        registration = registrations.parameters.get(trained[0]) if trained else None
        if registration is None or not parameter_stats.looks_fresh(module):
            return
        functions = [site.code.co_name for site in registration.sites]
        # A whole model may be made anew for each of something: a fold, a checkpoint.
        if "__init__" not in functions[-1:] or "forward" in functions:
            self._fresh.append((weakref.ref(trained[0]), registration.place, type(module).__name__))

    def before_backward(self, tensors: object, event: Event, frame: FrameType) -> None:
        fresh, self._fresh = self._fresh, []
        if not fresh:
            return
        optimizers = self.watcher.things.live_optimizers()
        held = {
            id(each) for optimizer in optimizers for each in inspection.parameters_of(optimizer)
        }
        for reference, place, kind in fresh:
            parameter = reference()
            if parameter is None or id(parameter) in held or not optimizers:
                continue
            updates = self._updates.setdefault(place, set())
            updates.add(self.watcher.updates)
            if len(updates) == _UPDATES:
                self.watcher.measure(LayerMadeAgain(place=place, kind=kind))

    def unwatched(self) -> None:
        self._fresh = []
