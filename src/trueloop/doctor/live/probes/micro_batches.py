"""How many targets each micro-batch of an update has, and how much its mean counts."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Loss
from trueloop.doctor.model.loss_measurements import CountedBatch, UpdateOfMicroBatches
from trueloop.doctor.model.things import NOWHERE

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context
    from trueloop.doctor.live.hub import CallArguments
    from trueloop.doctor.model.events import Event
    from trueloop.doctor.model.findings import Location
    from trueloop.doctor.model.things import Loop

_CLASSES = ("CrossEntropyLoss", "NLLLoss")
_NUMBERS = ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss")
_UPDATES = 40
"""Updates of several micro-batches that are looked at."""
_EQUAL = 0.01
"""Relative difference of two weights that count as one."""


@dataclass(eq=False)
class _Mean:
    """A loss that was computed since the last backward."""

    place: Location
    output: torch.Tensor
    """Its value, without the graph."""
    targets: torch.Tensor | int
    summed: bool


@dataclass(eq=False)
class _Micro:
    """One backward."""

    place: Location
    mean: _Mean
    loss: torch.Tensor
    fetched: int
    """Batches that loaders have given until then."""
    given: _Given | None
    loop: Loop | None
    turn: int


class _Given(NamedTuple):
    """The first input of a model since the last backward."""

    address: int
    shape: tuple[int, ...]


class MicroBatches(Probe):
    """Follows the losses and the backwards between two steps of an optimizer."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._means: dict[int, list[_Mean | None]] = {}
        """Thread -> losses since its last backward; None for one that is not understood."""
        self._micros: dict[int, list[_Micro | None]] = {}
        self._fetched = 0
        self._given: dict[int, _Given] = {}
        self._updates = 0

    def fetched(self, batch: object, event: Event) -> None:
        self._fetched += 1

    def after_forward(
        self, module: nn.Module, given: CallArguments, output: object, event: Event
    ) -> None:
        thread = threading.get_ident()
        if event.grad and thread not in self._given and self._updates < _UPDATES:
            first = autograd_graph.first_in(given)
            if first is not None and first.layout == torch.strided:
                self._given[thread] = _Given(first.data_ptr(), tuple(first.shape))

    def lost(self, given: dict[str, Any], output: torch.Tensor, event: Event) -> None:
        assert isinstance(event, Loss)
        if event.grad and output.requires_grad and self._updates < _UPDATES:
            mean = _mean(given, output, event)
            self._means.setdefault(threading.get_ident(), []).append(mean)

    def before_backward(self, tensors: object, event: Event, frame: FrameType) -> None:
        if self._updates >= _UPDATES:
            return
        thread = threading.get_ident()
        means, first = self._means.pop(thread, []), self._given.pop(thread, None)
        loss = autograd_graph.first_in(tensors)
        micro = None
        ours = user_frames.kind_of(user_frames.of_program(frame).f_code.co_filename) == "user"
        if len(means) == 1 and means[0] is not None and loss is not None and ours:
            turn = event.turns[-1] if event.turns else None
            micro = _Micro(
                event.place, means[0], loss.detach(), self._fetched, first,
                turn.loop if turn is not None else None, turn.index if turn is not None else 0,
            ) if loss.numel() == 1 else None  # fmt: skip
        self._micros.setdefault(thread, []).append(micro)

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        window = self._micros.pop(threading.get_ident(), [])
        if len(window) > 1:
            self._updates += 1
            known = [each for each in window if each is not None]
            if len(known) == len(window) and _is_one_window(known):
                measured = _measured(known)
                if measured is not None:
                    self.watcher.measure(measured)

    def unwatched(self) -> None:
        for each in (self._means, self._micros, self._given):
            each.clear()


def _mean(given: dict[str, Any], output: torch.Tensor, event: Loss) -> _Mean | None:
    """A loss whose number of targets can be counted."""
    criterion, target = event.criterion, given.get("target")
    if criterion.reduction not in ("mean", "sum") or given.get("weight") is not None:
        return None
    if not inspection.is_tensor(target) or not target.dim() or output.numel() != 1:
        return None
    whole = not target.is_floating_point() and not target.is_complex()
    if criterion.kind in _CLASSES and whole and target.dim() < 3:
        counted: torch.Tensor | int = (target != given.get("ignore_index", -100)).sum()
    elif criterion.kind in (*_CLASSES, *_NUMBERS) and not whole:
        # A series that is longer than others is one sample all the same.
        counted = target.shape[0]
    else:
        return None
    return _Mean(event.place, output.detach(), counted, criterion.reduction == "sum")


def _is_one_window(micros: list[_Micro]) -> bool:
    """The same line computes the loss of different samples each time."""
    first = micros[0]
    return all(
        each.mean.place == first.mean.place and each.place == first.place for each in micros
    ) and len({(each.fetched, each.given) for each in micros}) == len(micros)


def _measured(micros: list[_Micro]) -> UpdateOfMicroBatches | None:
    """The numbers of an update whose means all count the same."""
    counts = [int(each.mean.targets) for each in micros]
    losses = [float(each.loss) for each in micros]
    outputs = [float(each.mean.output) for each in micros]
    if not all(counts) or not all(outputs):
        return None
    ratios = [loss / output for loss, output in zip(losses, outputs, strict=True)]
    weights = [
        ratio * count if each.mean.summed else ratio
        for ratio, count, each in zip(ratios, counts, micros, strict=True)
    ]
    most, least = max(weights), min(weights)
    undivided = all(abs(ratio - 1) < 1e-6 for ratio in ratios)
    if undivided or least <= 0 or most - least > _EQUAL * most:
        return None
    made = [
        CountedBatch(count, _samples(each), each.loop, each.turn)
        for count, each in zip(counts, micros, strict=True)
    ]
    place = micros[0].mean.place
    return UpdateOfMicroBatches(place=place if place.line else NOWHERE, micro_batches=made)


def _samples(micro: _Micro) -> int:
    return micro.given.shape[0] if micro.given is not None and micro.given.shape else 0
