"""Optimizers, gradient scalers and clipping."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import chain, islice
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.compiler import is_compiling
from torch.optim import optimizer as optim

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.frames.user_frames import passed_over
from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.tracing import dispatch_modes, no_torch_function
from trueloop.doctor.live.watcher import quietly
from trueloop.doctor.model.events import Clip, Made, OptimizerStep, ScalerUpdate, Unscale, ZeroGrad
from trueloop.doctor.model.findings import Location

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.watcher import Watcher


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
        caller = sys._getframe(1)

        def say() -> None:
            frame = _outside(self, caller)
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
        if is_compiling():
            return
        if watcher.looking:
            frame = sys._getframe(1)
            quietly(watcher, watcher.hands.look, frame)
            watcher.probes.tell("before_step", optimizer, frame)
        if watcher.clock.on:
            watcher.clock.steps()

    return hook


def _after_step(watcher: Watcher) -> Any:
    between = watcher.between

    def hook(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        if between.on:
            if between.open and between.optimizer() is optimizer:
                between.open = False
                between.ends.append(len(between.numbers))
                watcher.updates += 1
                between.left -= 1
                if not between.left:
                    quietly(watcher, between.leave)
                return
            quietly(watcher, between.leave)
        if watcher.clock.on:
            watcher.clock.has_stepped(optimizer)
        frame = sys._getframe(1)
        if watcher.looking:
            # The first is the optimizer.
            closure = any(callable(each) for each in (*args[1:], kwargs.get("closure")))
            quietly(watcher, _stepped, watcher, optimizer, closure, frame)
        try:
            if watcher.progress.on and not dispatch_modes():
                with no_torch_function():
                    watcher.progress.stepped(optimizer, frame)
        except Exception as error:  # whatever it is, the program goes on
            watcher.failed(error)
        try:
            watcher.updated()
        except Exception as error:
            watcher.failed(error, missed=True)
        if watcher.clock.on:
            watcher.clock.turn(optimizer)

    return hook


def _stepped(watcher: Watcher, optimizer: Any, closure: bool, frame: Any) -> None:
    track, things = watcher.track(), watcher.things
    scaler = track.scaler
    track.scaler_stepped = True

    def late(place: Location, serial: int) -> dict[str, Any]:
        if scaler is None:
            spelled, conditional = source_map.spelled(place), source_map.is_conditional(place)
            return {"spelled": spelled, "conditional": conditional}
        thing, written = things.scaler(scaler), source_map.spelled(place)
        name = written.rpartition(".")[2]
        thing.updated_by_name = source_map.calls_method(place.path, name, "update")
        return {
            "scaler": thing,
            "scaler_spelled": written,
            "spelled": source_map.argument(place, 0, "optimizer"),
        }

    event = watcher.emit(
        OptimizerStep, frame, late, optimizer=things.optimizer(optimizer), closure=closure
    )
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
    def scale(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if watcher.looking or watcher.health.on or watcher.progress.on:
            given = args[0] if args else kwargs.get("outputs")
            quietly(watcher, _scaled, watcher, self, given, result)
        return result

    return scale


def _is_on(scaler: Any) -> bool:
    return inspection.held(scaler, "_enabled") is True


def _scaled(watcher: Watcher, scaler: Any, given: Any, result: Any) -> None:
    from dataclasses import replace

    if not _is_on(scaler):
        return
    if watcher.health.on:
        watcher.health.scaled(given, result)
    if watcher.progress.on:
        watcher.progress.scaled(given, result)
    if not watcher.looking:
        return
    for each in autograd_graph.tensors_in(result):
        plain = autograd_graph.tensor_of(each, watcher.things)
        thing = replace(plain, scaled_by=watcher.things.scaler(scaler))
        watcher.things.tensors.put(each, thing)
        autograd_graph.note(each, thing)


def _unscale(watcher: Watcher, original: Any) -> Any:
    def unscale_(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if watcher.looking:
            frame, things = sys._getframe(1), watcher.things
            optimizer = args[0] if args else kwargs.get("optimizer")

            def say() -> None:
                if not _is_on(self) or watcher.track().scaler is not None:
                    return
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
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        track = quietly(watcher, watcher.track) if watcher.looking else None
        if track is None:
            return original(self, *args, **kwargs)
        track.scaler, track.scaler_stepped = self, False
        try:
            result = original(self, *args, **kwargs)
        finally:
            # It has skipped the update, or refuses a second one: asked for all the same.
            if not track.scaler_stepped:
                optimizer = args[0] if args else kwargs.get("optimizer")
                quietly(watcher, _stepped, watcher, optimizer, False, sys._getframe(1))
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
    key = "max_norm" if by == "norm" else "clip_value"

    def clip(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not watcher.looking:
            return original(*args, **kwargs)
        frame = sys._getframe(1)
        limit = args[1] if len(args) > 1 else kwargs.get(key)
        parameters = args[0] if args else kwargs.get("parameters")
        seen = parameters
        if type(parameters) in _ONCE:
            seen = []  # it can be gone through once: noted is what is given out
            noting = quietly(watcher, _noting, parameters, seen)
            if noting is not None and args:
                args = (noting, *args[1:])
            elif noting is not None:
                kwargs["parameters"] = noting
        result = original(*args, **kwargs)
        quietly(watcher, _clipped, watcher, seen, limit, by, frame)
        return result

    return clip


def _noting(parameters: Any, seen: list[Any]) -> Any:
    """The same as an iterator that notes what it gives; a generator for a generator."""
    if type(parameters) is not GeneratorType:
        return map(_noted(seen), parameters)

    @passed_over
    def noting() -> Iterator[Any]:
        for each in parameters:
            seen.append(each)
            yield each

    return noting()


def _noted(seen: list[Any]) -> Callable[[Any], Any]:
    @passed_over
    def note(each: Any) -> Any:
        seen.append(each)
        return each

    return note


def _clipped(watcher: Watcher, given: Any, limit: Any, by: str, frame: Any) -> None:
    held = [given] if inspection.is_tensor(given) else _parts(given)
    models, loose = watcher.things.models_of(held)
    number = inspection.number(limit)
    watcher.emit(
        Clip,
        frame,
        lambda place, serial: {"result_used": source_map.result_used(place)},
        models=models,
        whole=bool(held) and not loose,
        by=by,
        limit=number,
    )
    watcher.hands.note_gradients()


def _parts(given: Any) -> list[Any]:
    """The parameters of what was clipped; none where going through it would run code."""
    if inspection.is_a(given, nn.ParameterList):
        return list(given.parameters())
    if type(given) in _VIEWS:
        return list(given)
    if inspection.is_a(given, list):
        return list.copy(given)
    return list(tuple.__getitem__(given, slice(None))) if inspection.is_a(given, tuple) else []


_ONCE = (GeneratorType, map, filter, zip, chain, islice)
_VIEWS: tuple[type, ...] = (set, frozenset, type({}.values()), type({}.keys()))
