"""The loss functions of `torch.nn.functional`, which the loss modules call too."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_compiling
from torch.nn import functional

from trueloop.doctor.live.hub import dispatch_modes, no_torch_function
from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.objects.loss_functions import KINDS
from trueloop.doctor.model.events import Loss
from trueloop.doctor.model.things import Criterion, Tensor

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import Args, Kwargs, P, R
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.recorder import Recorder

_ACTIVATIONS = ("softmax", "log_softmax", "sigmoid", "logsigmoid")


def install(recorder: Recorder, patches: Patches) -> None:
    for name, kind in KINDS.items():
        patches.replace(functional, name, partial(_loss, recorder, kind))
    for name in _ACTIVATIONS:
        patches.replace(functional, name, partial(_activation, recorder))
    for name in ("softmax", "log_softmax"):
        patches.replace(torch, name, partial(_activation, recorder))


def _activation(recorder: Recorder, original: Callable[P, R]) -> Callable[P, R]:
    hub = recorder.hub

    def activation(*args: P.args, **kwargs: P.kwargs) -> R:
        if is_compiling() or not hub.sampling or not recorder.can_read(args):
            return original(*args, **kwargs)
        output = original(*args, **kwargs)
        hub.guarded(_applied, recorder, output, sys._getframe(1))
        return output

    return activation


def _applied(recorder: Recorder, output: object, frame: FrameType) -> None:
    if inspection.is_tensor(output) and output.grad_fn is not None:
        metadata: Any = output.grad_fn.metadata
        metadata[autograd_graph.MADE] = recorder.place(frame)


def _loss(recorder: Recorder, kind: str, original: Callable[P, R]) -> Callable[P, R]:
    hub = recorder.hub
    names = list(inspect.signature(original).parameters)
    clock, calls, between = hub.timer, hub.calls, hub.unsampled

    def loss(*args: P.args, **kwargs: P.kwargs) -> R:
        if is_compiling():
            return original(*args, **kwargs)
        if between.on and torch.is_grad_enabled():  # nothing is asked of it there
            return original(*args, **kwargs)
        if clock.on and clock.enter("loss"):
            return clock.run("loss", loss, *args, **kwargs)
        if not hub.sampling:
            if hub.follows_training and not torch.is_grad_enabled():
                output = original(*args, **kwargs)
                _without_graph(recorder, kind, args, kwargs, output, sys._getframe(1))
                return output
            if calls.holds and hub.checks_finite:
                return calls.run(original, None, args, kwargs, sys._getframe(1))
            return original(*args, **kwargs)
        if not recorder.can_read(args, kwargs):
            return original(*args, **kwargs)
        track = hub.guarded(recorder.track)
        if hub.checks_finite and track is not None and not track.depth:
            output = calls.run(original, None, args, kwargs, sys._getframe(1))
        else:
            output = original(*args, **kwargs)
        if track is not None and inspection.is_tensor(output) and not track.quiet:
            frame = sys._getframe(1)
            given = dict(zip(names, args, strict=False)) | kwargs  # the call has gone well
            ordered = {name: given[name] for name in names if name in given}
            hub.guarded(_computed, recorder, kind, ordered, output, frame)
            if hub.follows_training and not torch.is_grad_enabled():
                _without_graph(recorder, kind, args, kwargs, output, frame)
        return output

    return loss


def _without_graph(
    recorder: Recorder, kind: str, args: Args, kwargs: Kwargs, output: object, frame: FrameType
) -> None:
    """A loss of an evaluation, whether somebody looks or not."""
    hub = recorder.hub
    try:
        if hub.multithreaded or dispatch_modes():
            return
        with no_torch_function():
            hub.evaluation_loss(kind, args, kwargs, output, frame)
    except Exception as error:  # whatever it is, the program continues
        hub.failed(error)


def _computed(
    recorder: Recorder, kind: str, given: dict[str, Any], output: torch.Tensor, frame: FrameType
) -> None:
    hub = recorder.hub
    things = recorder.things
    first = next(iter(given.values()), None)
    source, target = (
        autograd_graph.tensor_of(each, things) if inspection.is_tensor(each) else None
        for each in (first, given.get("target"))
    )
    if isinstance(target, Tensor) and target.loader is None:
        target = _moved(recorder.track().batch, source, target)
    criterion = Criterion(kind=kind, known=True, reduction=_reduction(given))
    criterion.arguments["log_target"] = given.get("log_target") is True
    base = autograd_graph.tensor_of(output, things)
    reduced = criterion.reduction if criterion.reduction in ("mean", "sum") else None
    thing = replace(
        base,
        criteria=base.criteria | {criterion},
        is_loss=True,
        reduced=reduced,
        divided=False,
    )
    things.tensors.put(output, thing)
    autograd_graph.note(output, thing)
    event = recorder.emit(
        Loss, frame, criterion=criterion, input=source, target=target, output=thing
    )
    if event is not None:
        hub.lost(given, output, event)


def _moved(batch: tuple[Tensor, ...], source: Any, target: Tensor) -> Tensor:
    """A target that is a part of the batch, by its shape and type: it was moved to a device."""
    fitting = [each for each in batch if each.shape == target.shape and each.dtype == target.dtype]
    square = isinstance(source, Tensor) and len(set(source.shape or ())) == 1
    if len(fitting) != 1 or square:
        return target
    part = fitting[0]
    return replace(target, loader=part.loader, role=part.role, position=part.position)


def _reduction(given: dict[str, Any]) -> str:
    """As it was asked for, in words or in the old way."""
    average, reduce = given.get("size_average"), given.get("reduce")
    if average is None and reduce is None:
        asked = given.get("reduction", "mean")
        return asked if type(asked) is str else "none"
    if reduce is False:
        return "none"
    return "sum" if average is False else "mean"
