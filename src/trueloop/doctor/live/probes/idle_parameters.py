"""Parameters of an optimizer that never get a gradient, and those that never move."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.objects.manual_edits import gradient_state
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.live.probes import parameter_stats
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Event
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import ParameterGradient, ParameterMeasured, ParameterMoves

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context

UPDATES = 20
"""Updates after which a finding may be reported."""
_NOISE = 1e-3
"""A share of the others' gradients: a smaller one may be rounding (a bias before a batch norm)."""
_STEPS = 16
"""Steps between neighbouring floating-point numbers that an update should be at least."""
_LARGE = 1e3
"""The size of a parameter that numbers of its type are too coarse for, at a rate of `_USUAL_RATE`
or more."""
_USUAL_RATE = 1e-5
_ONE_WAY = 0.8
"""A share of the gradients that add up: they do not fluctuate around an optimum."""
_HOLD_STILL = ("Rprop", "LBFGS")


@dataclass(eq=False)
class ParameterRecord:
    """The observations of one parameter."""

    gets: bool = False
    misses: int = 0
    moves: bool = False
    still: int = 0
    sums: tuple[float, ...] | None = None
    """Before the current step."""
    without: Location | None = None
    """Where it was reported that it gets no gradient."""
    unmoved: Location | None = None
    rounded: int = 0
    """Steps that were too small for its size."""
    pull: float = 0.0
    pulls: float = 0.0
    """The sum of the gradients at these, and of their sizes."""


class IdleParameters(Probe):
    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self.records = WeakMap[ParameterRecord]()
        self._before: list[tuple[Any, Any]] = []
        self._received: set[int] = set()

    def _record(self, parameter: torch.Tensor) -> ParameterRecord:
        found = self.records.get(parameter)
        if found is None:
            found = ParameterRecord()
            self.records.put(parameter, found)
        return found

    def unwatched(self) -> None:
        self._before = []
        self._received.clear()

    # ------------------------------------------------------------------ gradients

    def before_backward(self, tensors: object, event: Event, frame: FrameType) -> None:
        self._before = [
            (weakref.ref(parameter), gradient_state(parameter))
            for optimizer in self.watcher.things.live_optimizers()
            for parameter in inspection.parameters_of(optimizer)
            if parameter.requires_grad
        ]

    def after_backward(self, frame: FrameType) -> None:
        before, self._before = self._before, []
        self._received.update(map(id, parameter_stats.changed(before)))

    def before_step(self, optimizer: Optimizer, frame: FrameType) -> None:
        if type(optimizer).__name__ in _HOLD_STILL or parameter_stats.capturing():
            return
        for parameter in inspection.parameters_of(optimizer):
            record = self._record(parameter)
            if parameter.grad is not None and not record.moves and _is_plain(parameter):
                record.sums = parameter_stats.sums(parameter)

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        held = [each for each in inspection.parameters_of(optimizer) if each.requires_grad]
        received = self._received
        if any(id(each) in received for each in held):
            for parameter in held:
                self._follow(parameter, id(parameter) in received, optimizer, frame)
        received.difference_update(map(id, held))
        if not parameter_stats.capturing():
            self._look_at_moves(optimizer, held, frame)

    def _follow(
        self, parameter: torch.Tensor, received: bool, optimizer: Optimizer, frame: FrameType
    ) -> None:
        record = self._record(parameter)
        if record.gets:
            return
        if received or parameter.grad is not None or optimizer.state.get(parameter):
            record.gets = True
            if record.without is not None:
                self._say(ParameterGradient, optimizer, parameter, record.without, idle=False)
            return
        record.misses += 1
        if record.misses == UPDATES and self._should_get(parameter):
            born = self.watcher.registrations.parameters.get(parameter)
            assert born is not None  # else `_should_get` is False
            record.without = born.place
            self._say(ParameterGradient, optimizer, parameter, record.without)

    def _should_get(self, parameter: torch.Tensor) -> bool:
        registrations = self.watcher.registrations
        owners = parameter_stats.owners(self.watcher, parameter)
        if not owners or registrations.parameters.get(parameter) is None:
            return False
        if not parameter.numel():  # FSDP has given all of it to other ranks
            return False
        owner = owners[-1]
        read = registrations.loaded.get(owner) is not None
        return owner.training and not read and parameter_stats.is_users(self.watcher, owner)

    def _say(
        self, kind: Callable[..., ParameterMeasured], optimizer: Optimizer, parameter: torch.Tensor,
        place: Location, *, idle: bool = True,
    ) -> None:  # fmt: skip
        owners = parameter_stats.owners(self.watcher, parameter)
        root = self.watcher.things.root_of(owners[-1]) if owners else None
        name = parameter_stats.name_of(root, parameter) if root is not None else ""
        model = self.watcher.things.model(root).name if root is not None else ""
        measured = kind(
            optimizer=self.watcher.things.optimizer(optimizer), place=place,
            parameter=".".join(filter(None, (model, name))), updates=UPDATES, is_idle=idle,
        )  # fmt: skip
        self.watcher.measure(measured)

    # ------------------------------------------------------------------ moves

    def _look_at_moves(self, optimizer: Optimizer, held: list[Any], frame: FrameType) -> None:
        waiting = []
        others = False
        for parameter in held:
            record = self._record(parameter)
            before, record.sums = record.sums, None
            if record.moves:
                others = others or parameter.grad is not None
            elif before is not None:
                if parameter_stats.sums(parameter) == before:
                    waiting.append((parameter, record))
                    continue
                record.moves = others = True
                record.still = 0
                if record.unmoved is not None:
                    self._say(ParameterMoves, optimizer, parameter, record.unmoved, idle=False)
        if not waiting or not others:
            return
        usual = _usual(held)
        for parameter, record in waiting:
            if _should_move(optimizer, parameter, usual):
                record.still += 1
                if record.still == UPDATES:
                    record.unmoved = self.watcher.things.optimizer(optimizer).made
                    self._say(ParameterMoves, optimizer, parameter, record.unmoved)
            elif record.unmoved is None and _rounds_away(optimizer, parameter, usual):
                self._follow_rounding(optimizer, parameter, record)

    def _follow_rounding(
        self, optimizer: Optimizer, parameter: torch.Tensor, record: ParameterRecord
    ) -> None:
        assert parameter.grad is not None  # else `_rounds_away` is False
        gradient = parameter_stats.local(parameter.grad)
        record.rounded += 1
        record.pull += float(gradient.sum())
        record.pulls += float(gradient.abs().sum())
        born = self.watcher.registrations.parameters.get(parameter)
        one_way = abs(record.pull) > _ONE_WAY * record.pulls
        if record.rounded >= UPDATES and one_way and born is not None:
            record.unmoved = born.place
            kind = partial(ParameterMoves, spacing=_spacing(parameter))
            self._say(kind, optimizer, parameter, born.place)


def _is_plain(parameter: torch.Tensor) -> bool:
    """In half precision small updates round to nothing: that is a different fault."""
    return parameter.dtype in (torch.float32, torch.float64)


def _usual(held: list[Any]) -> float:
    sizes = [_rms(each.grad) for each in held if each.grad is not None]
    finite = [each for each in sizes if math.isfinite(each) and each > 0]
    return median(finite) if finite else math.inf


def _rms(tensor: torch.Tensor) -> float:
    return float(parameter_stats.norm(tensor) / max(1, tensor.numel()) ** 0.5)


def _should_move(optimizer: Optimizer, parameter: torch.Tensor, usual: float) -> bool:
    rate = _rate(optimizer, parameter)
    if rate is None or parameter.grad is None:
        return False
    size = _rms(parameter.grad)
    if not math.isfinite(size) or size < _NOISE * usual:
        return False
    return rate * min(1.0, size) > _STEPS * _spacing(parameter)


def _rounds_away(optimizer: Optimizer, parameter: torch.Tensor, usual: float) -> bool:
    """Its gradient is as large as the others', and it is so large itself that steps of the usual
    size are less than half the way to the next number."""
    rate = _rate(optimizer, parameter)
    if rate is None or rate < _USUAL_RATE or parameter.grad is None or _rms(parameter) < _LARGE:
        return False
    size = _rms(parameter.grad)
    return math.isfinite(size) and size >= 0.1 * usual and rate < _spacing(parameter) / 2


def _rate(optimizer: Optimizer, parameter: torch.Tensor) -> float | None:
    group = next(
        each for each in optimizer.param_groups if any(p is parameter for p in each["params"])
    )
    return inspection.number(group.get("lr"))


def _spacing(parameter: torch.Tensor) -> float:
    """Between neighbouring numbers of its size, or up to twice that."""
    return float(torch.finfo(parameter.dtype).eps * _rms(parameter))
