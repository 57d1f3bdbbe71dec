"""The calls of the latest update that was looked at, as shapes: what they keep for the backward can
be counted when the program has died of it."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any

from torch.nn import functional

from trueloop.doctor.live.memory.fake_forward import CallSpec, note
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.objects.loss_functions import KINDS
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Event

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context

_MOST = 8


class RecordedShapes(Probe):
    """Keeps only shapes and plain values, and the models weakly."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self.recipe: CallSpec | None = None
        self._is_over = True

    def after_forward(self, module: nn.Module, given: Any, output: object, event: Event) -> None:
        if event.grad and module.training:
            self._add(module, *given)

    def lost(self, given: dict[str, Any], output: torch.Tensor, event: Event) -> None:
        criterion = getattr(event, "criterion", None)
        names = [name for name, kind in KINDS.items() if kind == getattr(criterion, "kind", "")]
        if event.grad and names and inspection.is_tensor(output) and output.requires_grad:
            self._add(getattr(functional, names[0]), (), given)

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        self._is_over = True

    def _add(self, function: Any, args: Any, kwargs: Any) -> None:
        call = note(function, args, kwargs)
        if self._is_over or self.recipe is None:
            self.recipe, self._is_over = CallSpec([]), False
        if call is not None and len(self.recipe.calls) < _MOST:
            self.recipe.calls.append(call)
