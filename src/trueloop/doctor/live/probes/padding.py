"""Targets that are padding, and that a loss counts.

A program shows in three ways which positions are padding: an embedding has a `padding_idx`, a model
is given a mask, or the rows of a batch end in one value that occurs nowhere else, each with as many
as it is shorter than the longest.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import nn

from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Loss, ModelForward
from trueloop.doctor.model.loss_measurements import PaddingScored

if TYPE_CHECKING:
    from trueloop.doctor.live.context import Context
    from trueloop.doctor.live.hub import Args, CallArguments
    from trueloop.doctor.model.events import Event
    from trueloop.doctor.model.findings import Location

_CLASSES = ("CrossEntropyLoss", "NLLLoss")
_NUMBERS = ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss")
_BACKWARDS = 60
"""Backwards until which inputs and losses are looked at."""
_LOSSES = 3
_PADDING = 8
"""Losses with padding, and padded targets in all, that a finding takes."""
_LOOKS = 40
"""Losses of one place that are looked at."""
_LARGEST = 262_144
"""Numbers of an input that is kept until its loss."""


@dataclass(eq=False)
class PaddedInput:
    """Which positions of an input are padding."""

    pads: torch.Tensor
    by: Literal["padding_idx", "mask", "tails"]
    fill: int = 0
    size: int = 0
    """The embedding's `padding_idx` and its number of rows."""


@dataclass(eq=False)
class _Scored:
    """The losses of one place."""

    looks: int = 0
    hits: int = 0
    value: float | None = None
    padded: int = 0
    targets: int = 0
    elsewhere: bool = False
    closed: bool = False


class Padding(Probe):
    """Compares the padding of what models were given with the targets of losses."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._sources: dict[int, deque[PaddedInput]] = {}
        """Thread -> the latest inputs since its last backward."""
        self._tallies: dict[Location, _Scored] = {}
        self._backwards = 0

    # ------------------------------------------------------------------ inputs

    def entered(self, module: nn.Module, given: Args, outer: list[Any]) -> None:
        if self._backwards >= _BACKWARDS or not isinstance(module, nn.Embedding):
            return
        fill, tokens = module.padding_idx, next(iter(given), None)
        if fill is None or not inspection.is_tensor(tokens) or not torch.is_grad_enabled():
            return
        if tokens.dim() in (1, 2) and tokens.numel() <= _LARGEST:
            self._keep(PaddedInput(tokens == fill, "padding_idx", fill, module.num_embeddings))

    def after_forward(
        self, module: nn.Module, given: CallArguments, output: object, event: Event
    ) -> None:
        assert isinstance(event, ModelForward)
        if self._backwards >= _BACKWARDS or not event.grad:
            return
        for each in autograd_graph.tensors_in(given):
            if each.layout != torch.strided:
                continue  # a sparse matrix has no rows of padding
            pads = _mask(each)
            if pads is not None:
                self._keep(PaddedInput(pads, "mask"))
            else:
                pads = _tails(each)
                if pads is not None:
                    self._keep(PaddedInput(pads, "tails"))

    def _keep(self, source: PaddedInput) -> None:
        self._sources.setdefault(threading.get_ident(), deque(maxlen=12)).append(source)

    def before_backward(self, tensors: object, event: Event, frame: FrameType) -> None:
        self._backwards += 1
        self._sources.pop(threading.get_ident(), None)

    def unwatched(self) -> None:
        self._sources.clear()

    # ------------------------------------------------------------------ losses

    def lost(self, given: dict[str, Any], output: torch.Tensor, event: Event) -> None:
        assert isinstance(event, Loss)
        criterion = event.criterion
        sources = self._sources.get(threading.get_ident())
        if not sources or not event.grad or criterion.reduction not in ("mean", "sum"):
            return
        tally = self._tallies.setdefault(event.place, _Scored())
        scores, target = given.get("input"), given.get("target")
        if tally.closed or not inspection.is_tensor(scores) or not inspection.is_tensor(target):
            return
        classes = criterion.kind in _CLASSES
        if target.is_floating_point() == classes or not (classes or criterion.kind in _NUMBERS):
            return
        tally.looks += 1
        fitting = [each for each in reversed(sources) if _fits(each, scores, target, classes)]
        fitting.sort(key=lambda each: each.by != "padding_idx")
        if not fitting:
            tally.closed = tally.looks >= _LOOKS
            return
        found = next((each for each in fitting if self._counts(each, given, tally)), None)
        if found is None or tally.looks >= _LOOKS:
            tally.closed = True
        if found is None or tally.hits < _LOSSES or tally.padded < _PADDING:
            return
        tally.closed = True
        assert tally.value is not None  # `_counts` has set it
        measured = PaddingScored(
            criterion=criterion, value=tally.value, padded=tally.padded, targets=tally.targets,
            by=found.by, fill=found.fill, elsewhere=tally.elsewhere, classes=classes,
        )  # fmt: skip
        self.watcher.measure(measured.at(event))

    def _counts(self, source: PaddedInput, given: dict[str, Any], tally: _Scored) -> bool:
        """All targets where the input is padding are one value, and the loss counts it."""
        pads, scores, target = source.pads, given["input"].detach(), given["target"].detach()
        if pads.dim() == 2 and bool(pads[:, 0].any()):
            # Rows that are filled in front: the last filling may have the first word as its target.
            pads = pads & torch.cat([pads[:, 1:], pads[:, -1:]], 1)
        inside = target.reshape(*pads.shape, -1)[pads.to(target.device)]
        if not inside.numel():
            return True
        value = inside.reshape(-1)[0]
        if not bool((inside == value).all()):
            return False
        number = float(value)
        if tally.value not in (None, number) or _is_masked(scores, target, pads, number):
            return False
        weight = given.get("weight")
        if target.is_floating_point():
            if weight is not None:
                return False
        elif number == given.get("ignore_index", -100) or (
            weight is not None and not float(weight[int(number)])
        ):
            return False
        # One step of a decoder shows no tails.
        one = pads.dim() == 1 or pads.shape[1] == 1
        if one and (source.fill, source.size) != (number, scores.shape[1]):
            return False
        others = int((target == value).sum()) - inside.numel()
        tally.elsewhere |= others > 2 * pads.shape[0] and others > 2 * pads.shape[-1]
        tally.hits, tally.value = tally.hits + 1, number
        tally.padded += inside.numel()
        tally.targets += target.numel()
        return True


def _fits(source: PaddedInput, scores: torch.Tensor, target: torch.Tensor, classes: bool) -> bool:
    """The targets are those of the input's positions, some of which are padding at the ends of
    rows."""
    pads = source.pads
    if classes:
        flat = target.dim() == 1 and target.numel() == pads.numel()
        if scores.dim() < 2 or not (flat or target.shape == pads.shape):
            return False
    elif target.shape[: pads.dim()] != pads.shape or target.shape != scores.shape:
        return False
    if not bool(pads.any()) or bool(pads.all()):
        return False
    return pads.dim() == 1 or pads.shape[1] == 1 or _at_ends(pads)


def _is_masked(
    scores: torch.Tensor, target: torch.Tensor, pads: torch.Tensor, value: float
) -> bool:
    """The predictions for the padding are constant: they were multiplied by a mask."""
    here = pads.to(scores.device)
    if target.is_floating_point():
        return bool((scores.reshape(*pads.shape, -1)[here] == value).all())
    rows = scores if target.dim() == 1 else scores.movedim(1, -1)
    picked = rows.reshape(*pads.shape, -1)[here]
    return bool((picked == picked[:, :1]).all())


def _at_ends(pads: torch.Tensor) -> bool:
    """All padding is at the end of its row, or all at its beginning; rows may be columns."""
    return any(
        bool((turned.cummin(1).values == turned).all())
        for plain in (pads.byte(), pads.byte().T)
        for turned in (plain, plain.flip(1))
    )


def _mask(given: torch.Tensor) -> torch.Tensor | None:
    """The padding, if a model was given a mask with a row for each sample."""
    if given.dim() != 2 or min(given.shape) < 3 or given.numel() > _LARGEST or given.requires_grad:
        return None
    if given.dtype != torch.bool and not bool(((given == 0) | (given == 1)).all()):
        return None
    for real in (given[:, :1], given[:, -1:]):
        if bool((real == real[0]).all()):
            pads = given != real
            return pads if bool(pads.any()) and _differ(pads.sum(1)) else None
    return None


def _tails(given: torch.Tensor) -> torch.Tensor | None:
    """The positions at the ends of rows with a value that occurs nowhere else, where the longest
    row has none; the rows may be columns."""
    if given.dim() not in (2, 3) or min(given.shape[:2]) < 3 or given.requires_grad:
        return None
    if given.numel() > _LARGEST or (given.dim() == 3) != given.is_floating_point():
        return None
    for rows in (given, given.transpose(0, 1)):
        # Of numbers only rows of zeros are padding for certain.
        ends = rows[:, -1]
        fill = ends.mode().values if rows.dim() == 2 else 0
        same = rows == fill
        pads = same if rows.dim() == 2 else same.all(2)
        if bool((pads.byte().flip(1).cummin(1).values.flip(1) != pads.byte()).any()):
            continue
        lengths = pads.sum(1)
        if bool((lengths == 0).any()) and int(lengths.max()) > 1 and _differ(lengths):
            return pads if rows is given else pads.T
    return None


def _differ(lengths: torch.Tensor) -> bool:
    """Padded rows are padded by different numbers."""
    padded = lengths[lengths > 0]
    return bool(padded.numel()) and bool((padded != padded[0]).any())
