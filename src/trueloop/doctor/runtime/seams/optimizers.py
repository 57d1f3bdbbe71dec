"""Optimizers, gradient scalers and clipping."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_compiling
from torch.optim import optimizer as optim

from trueloop.doctor.events import Clip, Made, ScalerUpdate, Step, Unscale, ZeroGrad
from trueloop.doctor.findings import Place
from trueloop.doctor.runtime import graph, program
from trueloop.doctor.runtime.watcher import quietly

if TYPE_CHECKING:
    from trueloop.doctor.runtime.patches import Patches
    from trueloop.doctor.runtime.watcher import Watcher


def install(watcher: Watcher, patches: Patches) -> None:
    base = optim.Optimizer
    patches.replace(base, "__init__", lambda original: _made(watcher, original))
    patches.replace(base, "zero_grad", lambda original: _zero_grad(watcher, original))
    before = optim.register_optimizer_step_pre_hook(_before_step(watcher))
    after = optim.register_optimizer_step_post_hook(_after_step(watcher))
    for hook in (before, after):
        patches.add(hook.remove, is_step_hook=True)
    scaler = torch.amp.GradScaler
    patches.replace(scaler, "__init__", lambda original: _scaler_made(watcher, original))
    patches.replace(scaler, "scale", lambda original: _scale(watcher, original))
    patches.replace(scaler, "unscale_", lambda original: _unscale(watcher, original))
    patches.replace(scaler, "step", lambda original: _scaler_step(watcher, original))
    patches.replace(scaler, "update", lambda original: _scaler_update(watcher, original))
    for owner in (torch.nn.utils, torch.nn.utils.clip_grad):
        patches.replace(owner, "clip_grad_norm_", lambda original: _clip(watcher, original, "norm"))
        patches.replace(
            owner, "clip_grad_value_", lambda original: _clip(watcher, original, "value")
        )


def _made(watcher: Watcher, original: Any) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        frame = _outside(self, sys._getframe(1))

        def say() -> None:
            watcher.look(why=("made", frame.f_code, frame.f_lasti))
            watcher.probes.tell("made", self, frame)
            if watcher.looking:  # weights that were put back begin something new
                watcher.hands.look(frame)
            thing = watcher.things.optimizer(self, watcher.place(frame))
            watcher.emit(Made, frame, thing=thing)

        quietly(watcher, say)

    return __init__


def _outside(optimizer: Any, frame: Any) -> Any:
    """Where an optimizer is made, rather than its class's own constructor."""
    makers = (vars(kind).get("__init__") for kind in type(optimizer).__mro__)
    own = {getattr(maker, "__code__", None) for maker in makers}
    while frame.f_back is not None and frame.f_code in own:
        frame = frame.f_back
    return frame


def _zero_grad(watcher: Watcher, original: Any) -> Any:
    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not is_compiling() and watcher.looking:
            frame = sys._getframe(1)

            def say() -> None:
                watcher.emit(ZeroGrad, frame, target=watcher.things.optimizer(self))
                watcher.hands.note_gradients()

            quietly(watcher, say)

    return zero_grad


def _before_step(watcher: Watcher) -> Any:
    def hook(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not is_compiling() and watcher.looking:
            frame = sys._getframe(1)
            quietly(watcher, lambda: watcher.hands.look(frame))
            watcher.probes.tell("before_step", optimizer, frame)
        if watcher.clock.on:
            watcher.clock.steps()

    return hook


def _after_step(watcher: Watcher) -> Any:
    def hook(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        if watcher.clock.on:
            watcher.clock.has_stepped(optimizer)
        if watcher.looking:
            frame = sys._getframe(1)
            # The first is the optimizer.
            closure = any(callable(each) for each in (*args[1:], kwargs.get("closure")))
            quietly(watcher, lambda: _stepped(watcher, optimizer, closure, frame))
        if watcher.progress.on:
            try:
                watcher.progress.stepped(optimizer, sys._getframe(1))
            except Exception as error:  # whatever it is, the program goes on
                watcher.failed(error)
        watcher.updated()
        if watcher.clock.on:
            watcher.clock.turn(optimizer)

    return hook


def _stepped(watcher: Watcher, optimizer: Any, closure: bool, frame: Any) -> None:
    track, things = watcher.track(), watcher.things
    scaler = track.scaler
    track.scaler_stepped = True

    def late(place: Place, serial: int) -> dict[str, Any]:
        if scaler is None:
            spelled, conditional = program.spelled(place), program.is_conditional(place)
            return {"spelled": spelled, "conditional": conditional}
        thing, written = things.scaler(scaler), program.spelled(place)
        name = written.rpartition(".")[2]
        thing.facts["updated by name"] = program.calls_method(place.path, name, "update")
        return {
            "scaler": thing,
            "scaler_spelled": written,
            "spelled": program.argument(place, 0, "optimizer"),
        }

    event = watcher.emit(Step, frame, late, optimizer=things.optimizer(optimizer), closure=closure)
    if event is not None:
        watcher.probes.tell("after_step", optimizer, event, frame)
    watcher.hands.note_parameters()
    watcher.hands.note_gradients()


def _scaler_made(watcher: Watcher, original: Any) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        frame = sys._getframe(1)
        quietly(
            watcher,
            lambda: watcher.emit(
                Made, frame, thing=watcher.things.scaler(self, watcher.place(frame))
            ),
        )

    return __init__


def _scale(watcher: Watcher, original: Any) -> Any:
    def scale(self: Any, outputs: Any) -> Any:
        result = original(self, outputs)
        if watcher.health.on and self.is_enabled():
            quietly(watcher, lambda: watcher.health.scaled(outputs, result))
        if watcher.progress.on and self.is_enabled():
            quietly(watcher, lambda: watcher.progress.scaled(outputs, result))
        if watcher.looking and self.is_enabled():
            quietly(watcher, lambda: _scaled(watcher, self, result))
        return result

    return scale


def _scaled(watcher: Watcher, scaler: Any, result: Any) -> None:
    from dataclasses import replace

    for each in graph.tensors_in(result):
        plain = graph.tensor_of(each, watcher.things)
        thing = replace(plain, scaled_by=watcher.things.scaler(scaler))
        watcher.things.tensors.put(each, thing)
        graph.note(each, thing)


def _unscale(watcher: Watcher, original: Any) -> Any:
    def unscale_(self: Any, optimizer: Any) -> None:
        original(self, optimizer)
        if watcher.looking and self.is_enabled() and watcher.track().scaler is None:
            frame, things = sys._getframe(1), watcher.things

            def say() -> None:
                watcher.emit(
                    Unscale,
                    frame,
                    scaler=things.scaler(self),
                    optimizer=things.optimizer(optimizer),
                )
                watcher.hands.note_gradients()

            quietly(watcher, say)

    return unscale_


def _scaler_step(watcher: Watcher, original: Any) -> Any:
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if not watcher.looking:
            return original(self, optimizer, *args, **kwargs)
        track = watcher.track()
        track.scaler, track.scaler_stepped = self, False
        try:
            result = original(self, optimizer, *args, **kwargs)
        finally:
            # It has skipped the update, or refuses a second one: asked for all the same.
            if not track.scaler_stepped:
                frame = sys._getframe(1)
                quietly(watcher, lambda: _stepped(watcher, optimizer, False, frame))
            track.scaler = None
        return result

    return step


def _scaler_update(watcher: Watcher, original: Any) -> Any:
    def update(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if watcher.looking:
            frame = sys._getframe(1)
            quietly(
                watcher,
                lambda: watcher.emit(ScalerUpdate, frame, scaler=watcher.things.scaler(self)),
            )

    return update


def _clip(watcher: Watcher, original: Any, by: str) -> Any:
    def clip(parameters: Any, limit: Any = None, *args: Any, **kwargs: Any) -> Any:
        key = "max_norm" if by == "norm" else "clip_value"
        limit = kwargs.pop(key, limit)
        if is_compiling() or not watcher.looking:
            return original(parameters, limit, *args, **kwargs)
        held = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        result = original(held, limit, *args, **kwargs)
        frame = sys._getframe(1)
        quietly(watcher, lambda: _clipped(watcher, held, limit, by, frame))
        return result

    return clip


def _clipped(watcher: Watcher, held: list[Any], limit: Any, by: str, frame: Any) -> None:
    models, loose = watcher.things.models_of(held)
    number = float(limit) if isinstance(limit, (int, float, torch.Tensor)) else None
    watcher.emit(
        Clip,
        frame,
        lambda place, serial: {"result_used": program.result_used(place)},
        models=models,
        whole=not loose,
        by=by,
        limit=number,
    )
    watcher.hands.note_gradients()
