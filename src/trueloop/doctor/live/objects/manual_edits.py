"""Changes that the program makes to gradients and parameters by hand, without a call that could be
seen.

`p.grad = None`, `p.grad.mul_(...)`, `p.data -= lr * p.grad`: between two events the gradients or
the parameters have changed, and no event explains it. A few tensors of each optimizer are looked
at; the hand that changes one changes all.
"""

from __future__ import annotations

import weakref
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from trueloop.doctor.live.objects import inspection
from trueloop.doctor.model.events import GradEdited, ManualUpdate, ZeroGrad

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from trueloop.doctor.live.hub import Hub
    from trueloop.doctor.live.recorder import Recorder

_SAMPLE = 6
_VALUES = 8


class ManualEdits:
    def __init__(self, hub: Hub, watcher: Recorder) -> None:
        self._hub, self._watcher = hub, watcher
        self._gradients: list[tuple[Any, list[Any]]] = []
        """Of each optimizer: a weak reference, and of some parameters what their gradients were."""
        self._parameters: list[tuple[Any, list[torch.Tensor]]] = []
        """Of each optimizer: a weak reference, and a few values of some parameters."""

    def note_gradients(self) -> None:
        """Whatever is in the gradients now is known."""
        with self._hub.lock:
            if not self._hub.multithreaded:
                self._gradients = [
                    (weakref.ref(each), list(map(gradient_state, _some(each))))
                    for each in self._watcher.things.live_optimizers()
                ]

    def note_parameters(self) -> None:
        """Whatever the parameters are now is known."""
        with self._hub.lock:
            if not self._hub.multithreaded:
                self._parameters = [
                    (weakref.ref(each), _values(_some(each)))
                    for each in self._watcher.things.live_optimizers()
                ]

    def look(self, frame: FrameType) -> None:
        """Say what has been done by hand since the last event."""
        with self._hub.lock:
            if not self._hub.multithreaded:
                self._look_at_gradients(frame)
                self._look_at_parameters(frame)

    def _look_at_gradients(self, frame: FrameType) -> None:
        found = False
        for reference, before in self._gradients:
            optimizer = reference()
            if optimizer is None:
                continue
            now = _some(optimizer)
            if len(now) != len(before):
                continue
            pairs = [
                (was, each)
                for was, each in zip(before, now, strict=True)
                if was != gradient_state(each)
            ]
            gradients = [each.grad for each in now if each.grad is not None]
            # `p.grad.data.zero_()` changes no version.
            if not pairs and not (gradients and all(map(is_zero, gradients))):
                continue
            found = True
            thing = self._watcher.things.optimizer(optimizer)
            if all(each.grad is None or not bool(each.grad.any()) for _, each in pairs):
                self._watcher.emit(ZeroGrad, frame, target=thing, by_hand=True)
            else:
                self._watcher.emit(GradEdited, frame, target=thing)
        if found or len(self._gradients) != len(self._watcher.things.optimizers):
            self.note_gradients()

    def _look_at_parameters(self, frame: FrameType) -> None:
        known = [(reference(), values) for reference, values in self._parameters]
        self.note_parameters()
        for reference, now in self._parameters:
            optimizer = reference()
            before = next((values for each, values in known if each is optimizer), now)
            changed = len(now) == len(before) and any(
                was.shape == new.shape and not torch.equal(was, new)
                for was, new in zip(before, now, strict=True)
            )
            if changed:
                thing = self._watcher.things.optimizer(optimizer)
                self._watcher.emit(ManualUpdate, frame, target=thing)


def is_zero(gradient: torch.Tensor) -> bool:
    """Of a sharded or sparse one nobody asks: it counts as one that is there."""
    plain = type(gradient) is torch.Tensor and gradient.layout is torch.strided
    return plain and not bool(gradient.any())


def _some(optimizer: Optimizer) -> list[Any]:
    """A few of an optimizer's parameters that learn: of the beginning, the middle and the end.
    Copies in full precision get their gradients by hand."""
    held = [
        each
        for each in inspection.parameters_of(optimizer)
        if each.requires_grad or each.grad is not None
    ]
    if len(held) <= _SAMPLE:
        return held
    return [held[i * (len(held) - 1) // (_SAMPLE - 1)] for i in range(_SAMPLE)]


def gradient_state(parameter: torch.Tensor) -> tuple[int, int] | None:
    """Changes when a gradient arrives."""
    gradient = parameter.grad
    return None if gradient is None else (id(gradient), gradient._version)


def _values(parameters: list[Any]) -> list[torch.Tensor]:
    """A few numbers of each, together where they are alike."""
    some = [
        (each.to_local() if hasattr(each, "to_local") else each).reshape(-1)[:_VALUES]
        for each in (parameter.detach() for parameter in parameters)
    ]
    if len({(each.dtype, each.device) for each in some}) == 1:
        return [torch.cat(some)]
    return [each.clone() for each in some]
