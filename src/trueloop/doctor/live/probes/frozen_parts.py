"""Batch norm and dropout that run in train mode inside of frozen modules and teachers."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.live.probes import parameter_stats
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Event, ModelForward
from trueloop.doctor.model.measurements import FrozenLayersRan

if TYPE_CHECKING:
    from trueloop.doctor.live.context import Context


class FrozenParts(Probe):
    """Gathers such layers in each forward from outside, by the outermost module around them that
    learns nothing."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._ran: list[tuple[nn.Module, nn.Module, bool]] = []
        """Layers, the parts that they are in, and whether these are frozen."""
        self._learns: dict[int, bool] = {}
        """Of the modules of the current forward."""
        self._gathered = WeakMap[bool]()
        """Batch norms, and whether they had statistics when they were first seen."""
        self._within = WeakMap[weakref.ref[nn.Module]]()
        """Layers that ran so -> the part around them."""
        self._learned: list[nn.Module] = []
        """Such parts that learned in the current forward."""
        self._weights = WeakMap[tuple[float, ...]]()
        """Parts, and their weights when they were first seen, as two sums."""

    def entered(self, module: nn.Module, given: object, outer: list[Any]) -> None:
        if not module.training or not isinstance(module, (_BatchNorm, _DropoutNd)):
            return
        parts = self._parts(outer)
        if not parts:
            self._thawed(module)
            return
        if isinstance(module, _DropoutNd):
            # Inside of a network that learns elsewhere it is noise on the features, as usual.
            counts = module.p > 0 and parts[0] is outer[0]
        else:
            counts = self._moves(module)
        if counts:
            self._ran.append((module, parts[0], not self._learns[id(parts[0])]))
            if self._within.get(module) is None:
                self._within.put(module, weakref.ref(parts[0]))

    def _thawed(self, layer: nn.Module) -> None:
        """It was in a frozen part, which learns now."""
        reference = self._within.get(layer)
        part = reference() if reference is not None else None
        if part is not None:
            self._learned.append(part)

    def _parts(self, outer: list[Any]) -> list[Any]:
        """The modules that are frozen, outermost first; under `no_grad` the outermost of all."""
        for each in outer:
            if id(each) not in self._learns:
                weights = [p for p in inspection.weights(each) if not inspection.is_lazy(p)]
                has_some = any(p.dim() > 1 for p in weights)
                self._learns[id(each)] = not has_some or any(p.requires_grad for p in weights)
        found = [each for each in outer if not self._learns[id(each)]]
        return found or ([] if torch.is_grad_enabled() else outer[:1])

    def _moves(self, layer: _BatchNorm) -> bool:
        """A batch norm changes statistics that it had before."""
        mean = layer.running_mean
        if not layer.track_running_stats or mean is None or not layer.momentum:
            return False
        found = self._gathered.get(layer)
        if found is None:
            found = bool(parameter_stats.local(mean).any())
            self._gathered.put(layer, found)
        return found

    def after_forward(self, module: nn.Module, given: Any, output: object, event: Event) -> None:
        ran, learned = self._ran, self._learned
        self._ran, self._learned, self._learns = [], [], {}
        if not ran and not learned:
            return
        assert isinstance(event, ModelForward)
        model = self.watcher.things.model
        for part in {id(part): part for part in (*(part for _, part, _ in ran), *learned)}.values():
            mine = [(layer, frozen) for layer, each, frozen in ran if each is part]
            found = FrozenLayersRan(
                forward=event,
                part=model(part),
                layers=[model(layer) for layer, _ in mine],
                frozen=all(frozen for _, frozen in mine),
                written=any(each is part for each in learned) or self._is_written(part),
            )
            self.watcher.measure(found.at(event))

    def _is_written(self, part: nn.Module) -> bool:
        matrices = [each for each in inspection.weights(part) if each.dim() > 1]
        sums = tuple(
            number
            for each in (matrices[:1] + matrices[-1:])
            for number in parameter_stats.sums(each)
        )
        before = self._weights.get(part)
        if before is None:
            self._weights.put(part, sums)
        return before not in (None, sums)

    def unwatched(self) -> None:
        self._ran, self._learned, self._learns = [], [], {}
