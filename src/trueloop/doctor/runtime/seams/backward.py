"""Gradients: `backward`, `autograd.grad`."""

from __future__ import annotations

import sys
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_compiling

from trueloop.doctor.events import Backward, GradTaken
from trueloop.doctor.runtime import graph
from trueloop.doctor.runtime.frames import passed_over
from trueloop.doctor.runtime.tracing import is_abstract
from trueloop.doctor.runtime.watcher import quietly

if TYPE_CHECKING:
    from trueloop.doctor.runtime.patches import Patches
    from trueloop.doctor.runtime.watcher import Watcher


def install(watcher: Watcher, patches: Patches) -> None:
    # `Tensor.backward` calls this one by its name.
    patches.replace(torch.autograd, "backward", lambda original: _backward(watcher, original))
    patches.replace(torch.autograd, "grad", lambda original: _grad(watcher, original))


def _backward(watcher: Watcher, original: Any) -> Any:
    clock, health, progress = watcher.clock, watcher.health, watcher.progress

    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return original(tensors, *args, **kwargs)
        if watcher.trainer != get_ident():
            watcher.trains()
        if clock.on and clock.enter("backward"):
            return clock.run("backward", backward, tensors, *args, **kwargs)
        asked = watcher.looking or health.on or progress.on
        if not asked or is_abstract(tensors):
            return original(tensors, *args, **kwargs)
        frame = sys._getframe(1)
        if not watcher.looking:
            return _unseen(watcher, original, (tensors, *args), kwargs, frame)
        creates = kwargs.get("create_graph", args[2] if len(args) > 2 else False)
        # Before, because the graph lets go of what it has saved, and hooks on gradients may step.
        quietly(watcher, lambda: _begins(watcher, tensors, bool(creates), frame))
        result = _unseen(watcher, original, (tensors, *args), kwargs, frame)
        if watcher.looking:
            quietly(watcher, watcher.hands.note_gradients)
            watcher.probes.tell("after_backward", frame)
        return result

    return backward


@passed_over
def _unseen(watcher: Watcher, original: Any, args: Any, kwargs: Any, frame: Any) -> Any:
    """What is asked at each backward, whether somebody looks or not: what the loss is, and whether
    it is finite."""
    health, progress = watcher.health, watcher.progress
    is_asked = health.on
    try:
        if is_asked:
            health.before(args[0], frame)
        if progress.on:
            progress.backward(args[0], frame)
    except Exception as error:  # whatever it is, the program goes on
        watcher.failed(error)
    result = original(*args, **kwargs)
    if not is_asked:
        return result
    try:
        keeps = kwargs.get("retain_graph") or kwargs.get("create_graph") or any(args[2:4])
        health.after(args[0], frame, bool(keeps))
    except Exception as error:
        watcher.failed(error)
    return result


def _begins(watcher: Watcher, tensors: Any, creates: bool, frame: Any) -> None:
    watcher.hands.look(frame)
    first = next(graph.tensors_in(tensors), None)
    loss = None if first is None else graph.tensor_of(first, watcher.things)
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
    def grad(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not watcher.looking or is_abstract(outputs):
            return original(outputs, *args, **kwargs)
        frame = sys._getframe(1)

        def say() -> None:
            first = next(graph.tensors_in(outputs), None)
            taken = None if first is None else graph.tensor_of(first, watcher.things)
            watcher.emit(GradTaken, frame, outputs=taken)

        quietly(watcher, say)
        return original(outputs, *args, **kwargs)

    return grad
