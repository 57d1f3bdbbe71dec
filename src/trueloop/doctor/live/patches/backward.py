"""Gradients: `backward`, `autograd.grad`."""

from __future__ import annotations

import sys
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch
from torch import dot
from torch.compiler import is_compiling

from trueloop.doctor.live.frames.user_frames import passed_over
from trueloop.doctor.live.objects import autograd_graph
from trueloop.doctor.live.tracing import (
    dispatch_modes,
    function_modes,
    is_transformed,
    no_torch_function,
)
from trueloop.doctor.live.watcher import quietly
from trueloop.doctor.model.events import Backward, GradTaken

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.unsampled_updates import Between
    from trueloop.doctor.live.watcher import Watcher


def install(watcher: Watcher, patches: Patches) -> None:
    # `Tensor.backward` calls this one by its name.
    patches.replace(torch.autograd, "backward", lambda original: _backward(watcher, original))
    patches.replace(torch.autograd, "grad", lambda original: _grad(watcher, original))


def _backward(watcher: Watcher, original: Any) -> Any:
    clock, health, progress = watcher.clock, watcher.health, watcher.progress
    between, takes = watcher.between, _takes(watcher)

    def backward(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return original(*args, **kwargs)
        if between.on:
            number = takes(args)
            if number is not None:
                result = original(*args, **kwargs)
                try:
                    if not between.on or not _notes(between, number):
                        between.leave()
                        _before(watcher, args[0], sys._getframe(1))
                        _after(watcher, args[0], (args, kwargs), sys._getframe(1))
                except Exception as error:  # whatever it is, the program goes on
                    watcher.failed(error)
                return result
        if watcher.trainer != get_ident():
            quietly(watcher, watcher.trains)
        if clock.on and clock.enter("backward"):
            return clock.run("backward", backward, *args, **kwargs)
        tensors = args[0] if args else kwargs.get("tensors")
        asked = watcher.looking or health.on or progress.on
        if not asked or not watcher.can_read(tensors):
            return original(*args, **kwargs)
        frame = sys._getframe(1)
        if not watcher.looking:
            return _unseen(watcher, original, tensors, (args, kwargs), frame)
        # Before, because the graph lets go of what it has saved, and hooks on gradients may step.
        quietly(watcher, _begins, watcher, tensors, (args, kwargs), frame)
        result = _unseen(watcher, original, tensors, (args, kwargs), frame)
        if watcher.looking:
            quietly(watcher, watcher.hands.note_gradients)
            watcher.probes.tell("after_backward", frame)
        return result

    return backward


def _takes(watcher: Watcher) -> Any:
    """A function that gives the loss of a backward that can be noted in a few steps, if it is
    finite; None of any other, before which it leaves what is between two looks."""
    between = watcher.between

    def takes(args: Any) -> float | None:
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
        except Exception as error:  # whatever it is, the program goes on
            watcher.failed(error)
        return None

    return takes


def _notes(between: Between, number: float) -> bool:
    """Note a backward that was taken, unless its gradient stands out or cannot be read."""
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


def _flag(name: str, args: Any, kwargs: Any) -> bool:
    """A switch of `torch.autograd.backward`, given by its name or its place."""
    place = {"retain_graph": 2, "create_graph": 3}[name]
    given = kwargs.get(name, args[place] if len(args) > place else False)
    return given is not False and given is not None


@passed_over
def _unseen(watcher: Watcher, original: Any, tensors: Any, given: Any, frame: Any) -> Any:
    """What is asked at each backward, whether somebody looks or not: what the loss is, and whether
    it is finite."""
    args, kwargs = given
    if dispatch_modes():  # operations of ours would be seen in them
        result = original(*args, **kwargs)
        watcher.health.calls.release()
        return result
    is_asked = watcher.health.on
    try:
        _before(watcher, tensors, frame)
    except Exception as error:  # whatever it is, the program goes on
        watcher.failed(error)
    result = original(*args, **kwargs)
    if not is_asked:
        return result
    try:
        _after(watcher, tensors, given, frame)
    except Exception as error:
        watcher.failed(error)
    return result


def _before(watcher: Watcher, tensors: Any, frame: Any) -> None:
    with no_torch_function():
        if watcher.health.on:
            watcher.health.before(tensors, frame)
        if watcher.progress.on:
            watcher.progress.backward(tensors, frame)


def _after(watcher: Watcher, tensors: Any, given: Any, frame: Any) -> None:
    with no_torch_function():
        keeps = _flag("retain_graph", *given) or _flag("create_graph", *given)
        watcher.health.after(tensors, frame, keeps)


def _begins(watcher: Watcher, tensors: Any, given: Any, frame: Any) -> None:
    creates = _flag("create_graph", *given)
    watcher.hands.look(frame)
    first = next(autograd_graph.tensors_in(tensors), None)
    loss = None if first is None else autograd_graph.tensor_of(first, watcher.things)
    scaled = loss is not None and loss.scaled_by is not None
    event = watcher.emit(
        Backward,
        frame,
        loss=loss,
        create_graph=creates,
        by="scaler" if scaled else "tensor",
    )
    if event is not None:
        watcher.probes.tell("before_backward", tensors, event, frame)


def _grad(watcher: Watcher, original: Any) -> Any:
    def grad(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not watcher.looking:
            return original(*args, **kwargs)
        outputs = args[0] if args else kwargs.get("outputs")
        if not watcher.can_read(outputs):
            return original(*args, **kwargs)
        frame = sys._getframe(1)

        def say() -> None:
            first = next(autograd_graph.tensors_in(outputs), None)
            taken = None if first is None else autograd_graph.tensor_of(first, watcher.things)
            watcher.emit(GradTaken, frame, outputs=taken)

        quietly(watcher, say)
        return original(*args, **kwargs)

    return grad
