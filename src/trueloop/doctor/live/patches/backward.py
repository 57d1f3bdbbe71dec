"""Gradients: `backward`, `autograd.grad`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import dot
from torch.compiler import is_compiling

from trueloop.doctor.live.frames.user_frames import passed_over
from trueloop.doctor.live.hub import dispatch_modes, no_torch_function
from trueloop.doctor.live.objects import autograd_graph
from trueloop.doctor.live.tracing import function_modes, is_transformed
from trueloop.doctor.model.events import Backward, GradTaken

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import Args, CallArguments, Hub, Kwargs, P, R, Unsampled
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    # `Tensor.backward` calls this one by its name.
    patches.replace(torch.autograd, "backward", lambda original: _backward(recorder, original))
    patches.replace(torch.autograd, "grad", lambda original: _grad(recorder, original))


def _backward(recorder: Recorder, original: Callable[P, R]) -> Callable[P, R]:
    hub = recorder.hub
    clock = hub.timer
    between, takes = hub.unsampled, _takes(hub)

    def backward(*args: P.args, **kwargs: P.kwargs) -> R:
        if is_compiling():
            return original(*args, **kwargs)
        if between.on:
            number = takes(args)
            if number is not None:
                result = original(*args, **kwargs)
                try:
                    if not between.on or not _notes(between, number):
                        between.leave()
                        with no_torch_function():
                            hub.backward_begins(args[0], sys._getframe(1))
                        _ended(hub, args[0], (args, kwargs), sys._getframe(1))
                except Exception as error:  # whatever it is, the program continues
                    hub.failed(error)
                return result
        if hub.training_thread != get_ident():
            hub.guarded(hub.note_training_thread)
        if clock.on and clock.enter("backward"):
            return clock.run("backward", backward, *args, **kwargs)
        tensors = args[0] if args else kwargs.get("tensors")
        asked = hub.sampling or hub.checks_finite or hub.follows_training
        if not asked or not recorder.can_read(tensors):
            return original(*args, **kwargs)
        frame = sys._getframe(1)
        if not hub.sampling:
            return _unseen(hub, original, tensors, (args, kwargs), frame)
        # Before, because the graph lets go of what it has saved, and hooks on gradients may step.
        hub.guarded(_begins, recorder, tensors, (args, kwargs), frame)
        result = _unseen(hub, original, tensors, (args, kwargs), frame)
        if hub.sampling:
            hub.guarded(hub.gradients_written)
            hub.after_backward(frame)
        return result

    return backward


def _takes(hub: Hub) -> Any:
    """A function that gives the loss of a backward that can be noted in a few steps, if it is
    finite; None of any other, before which it leaves what is between two looks."""
    between = hub.unsampled

    def takes(args: Args) -> float | None:
        try:
            loss = args[0] if args else None
            if (
                type(loss) is torch.Tensor
                and loss.is_cpu
                and get_ident() == between.thread
                and not dispatch_modes()
                and not function_modes()
                and not is_transformed()
                and loss.numel() == 1
            ):
                number: float = loss.item()
                if number - number == 0:
                    return number
            between.leave()
        except Exception as error:  # whatever it is, the program continues
            hub.failed(error)
        return None

    return takes


def _notes(between: Unsampled, number: float) -> bool:
    """Note a backward that was taken, unless its gradient is a spike or cannot be read."""
    parameter = between.parameter()
    if parameter is not None:
        gradient = parameter.grad
        if type(gradient) is not torch.Tensor or gradient.requires_grad:
            return False
        size = dot(gradient, gradient).item()
        if not size < between.limit:
            return False
        between.sizes.append(size)
    between.numbers.append(number)
    between.open = True
    return True


def _flag(name: str, args: Args, kwargs: Kwargs) -> bool:
    """A switch of `torch.autograd.backward`, given by its name or its place."""
    place = {"retain_graph": 2, "create_graph": 3}[name]
    given = kwargs.get(name, args[place] if len(args) > place else False)
    return given is not False and given is not None


@passed_over
def _unseen(
    hub: Hub, original: Callable[..., R], tensors: object, given: CallArguments, frame: FrameType
) -> R:
    """Checked at each backward, sampled or not: which loss it is, and whether it is finite."""
    args, kwargs = given
    if dispatch_modes():  # operations of ours would be seen in them
        result = original(*args, **kwargs)
        hub.calls.release()
        return result
    is_asked = hub.checks_finite
    with no_torch_function():
        hub.backward_begins(tensors, frame)
    result = original(*args, **kwargs)
    if is_asked:
        try:
            _ended(hub, tensors, given, frame)
        except Exception as error:  # whatever it is, the program continues
            hub.failed(error)
    return result


def _ended(hub: Hub, tensors: object, given: CallArguments, frame: FrameType) -> None:
    keeps = _flag("retain_graph", *given) or _flag("create_graph", *given)
    with no_torch_function():
        hub.backward_ended(tensors, frame, keeps)


def _begins(recorder: Recorder, tensors: object, given: CallArguments, frame: FrameType) -> None:
    hub = recorder.hub
    creates = _flag("create_graph", *given)
    hub.gradients_used(frame)
    first = next(autograd_graph.tensors_in(tensors), None)
    loss = None if first is None else autograd_graph.tensor_of(first, recorder.things)
    scaled = loss is not None and loss.scaled_by is not None
    if loss is not None and _is_weighted(*given):
        loss.divided = None  # the weight may divide it
    event = recorder.emit(
        Backward,
        frame,
        loss=loss,
        create_graph=creates,
        retain_graph=_flag("retain_graph", *given),
        by="scaler" if scaled else "tensor",
    )
    if event is not None:
        hub.before_backward(tensors, event, frame)


def _is_weighted(args: Args, kwargs: Kwargs) -> bool:
    """It is given a gradient to begin with, for which torch has two names."""
    given = (*args[1:2], kwargs.get("gradient"), kwargs.get("grad_tensors"))
    return any(each is not None for each in given)


def _creates_graph(args: Args, kwargs: Kwargs) -> bool:
    """The switch of `torch.autograd.grad`."""
    return bool(kwargs.get("create_graph", args[4] if len(args) > 4 else False))


def _grad(recorder: Recorder, original: Callable[P, R]) -> Callable[P, R]:
    hub = recorder.hub

    def grad(*args: P.args, **kwargs: P.kwargs) -> R:
        if is_compiling() or not hub.sampling:
            return original(*args, **kwargs)
        outputs = args[0] if args else kwargs.get("outputs")
        if not recorder.can_read(outputs):
            return original(*args, **kwargs)
        frame = sys._getframe(1)

        def say() -> None:
            first = next(autograd_graph.tensors_in(outputs), None)
            taken = None if first is None else autograd_graph.tensor_of(first, recorder.things)
            event = recorder.emit(GradTaken, frame, outputs=taken)
            if event is not None and event.grad and not _creates_graph(args, kwargs):
                hub.gradient_taken(event, frame)

        hub.guarded(say)
        return original(*args, **kwargs)

    return grad
