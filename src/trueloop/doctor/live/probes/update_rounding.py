"""How much of an update is lost, where parameters themselves are in half precision."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.probes import parameter_stats
from trueloop.doctor.live.probes.parameter_stats import local
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.measurements import UpdateRounding

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context
    from trueloop.doctor.model.events import Event

_HALF = (torch.float16, torch.bfloat16)
_SAMPLE = 8
"""Parameters of an optimizer that are looked at."""
_VALUES = 1024


class Rounding(Probe):
    """Compares parameters before and after a step, element by element."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._before: tuple[int, list[tuple[torch.Tensor, torch.Tensor]]] | None = None

    def before_step(self, optimizer: Optimizer, frame: FrameType) -> None:
        self._before = None
        some = _some(optimizer)
        if some:
            kept = [(_values(p).clone(), _values(p.grad) != 0) for p in some]
            self._before = (id(optimizer), kept)

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        before, self._before = self._before, None
        if before is None or before[0] != id(optimizer):
            return
        some, kept = _some(optimizer), before[1]
        if len(some) != len(kept):
            return
        asked = lost = 0
        for parameter, (old, moves) in zip(some, kept, strict=True):
            new = _values(parameter)
            if new.shape != old.shape:
                return
            asked += int(moves.sum())
            lost += int(((new == old) & moves & (old != 0)).sum())
        if asked:
            rounding = UpdateRounding(
                optimizer=self.watcher.things.optimizer(optimizer),
                dtype=str(some[0].dtype).rpartition(".")[2],
                asked=asked,
                lost=lost,
                lr=max(parameter_stats.rates(optimizer), default=0.0),
            )
            self.watcher.measure(rounding.at(event))

    def unwatched(self) -> None:
        self._before = None


def _some(optimizer: Optimizer) -> list[Any]:
    """Parameters in half precision that an optimizer of torch's is about to update."""
    if not type(optimizer).__module__.startswith("torch.optim"):
        return []  # it may round by chance, or hold copies in full precision
    found = [
        each
        for group in optimizer.param_groups
        if inspection.number(group.get("lr"))
        for each in group["params"]
        if inspection.is_tensor(each) and each.dtype in _HALF
        if each.grad is not None and not each.grad.is_sparse
    ]
    return [found[i] for i in range(0, len(found), max(1, len(found) // _SAMPLE))][:_SAMPLE]


def _values(tensor: torch.Tensor) -> torch.Tensor:
    return local(tensor).reshape(-1)[:_VALUES]
