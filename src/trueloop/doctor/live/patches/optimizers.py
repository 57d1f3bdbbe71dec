"""Optimizers, gradient scalers and clipping."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from inspect import unwrap
from itertools import chain, islice
from types import FrameType, GeneratorType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.compiler import is_compiling
from torch.optim import optimizer as optim

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.frames.user_frames import passed_over
from trueloop.doctor.live.hub import Hub, dispatch_modes, no_torch_function
from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.model.events import Clip, Made, OptimizerStep, ScalerUpdate, Unscale, ZeroGrad
from trueloop.doctor.model.findings import Location

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from trueloop.doctor.live.hub import Args, Kwargs, Method, P, R
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.recorder import Recorder

    _Hook = Callable[[Optimizer, Args, Kwargs], None]
    _Register = Callable[[Optimizer, _Hook], object]

_LEAST_LIMIT = 0.01
"""Limits of unscaled gradients are hardly smaller: a limit of at least this part of the scale was
multiplied by the scale."""

ENDED = 0
"""In place of an optimizer's identity: nobody watches any more."""


def install(recorder: Recorder, patches: Patches) -> None:
    base = optim.Optimizer
    patches.replace(base, "__init__", lambda original: _made(recorder, original))
    patches.replace(base, "zero_grad", lambda original: _zero_grad(recorder, original))
    before = optim.register_optimizer_step_pre_hook(_before_step(recorder))
    over = set[int]()
    stepped = _after_step(recorder, over)
    patches.replace(
        base, "register_step_post_hook", lambda original: _hook(original, stepped, over)
    )
    after = optim.register_optimizer_step_post_hook(stepped)
    patches.add(lambda: over.add(ENDED))  # the program's hooks outlive the watching
    for hook in (before, after):
        patches.add(hook.remove, is_step_hook=True)
    scaler = torch.amp.GradScaler
    patches.replace(scaler, "__init__", lambda original: _scaler_made(recorder, original))
    patches.replace(scaler, "scale", lambda original: _scale(recorder, original))
    patches.replace(scaler, "unscale_", lambda original: _unscale(recorder, original))
    patches.replace(scaler, "step", lambda original: _scaler_step(recorder, original))
    patches.replace(scaler, "update", lambda original: _scaler_update(recorder, original))
    patches.replace(scaler, "get_scale", lambda original: _scale_asked(recorder, original))
    for owner in (torch.nn.utils, torch.nn.utils.clip_grad):
        patches.replace(
            owner, "clip_grad_norm_", lambda original: _clip(recorder, original, "norm")
        )
        patches.replace(
            owner, "clip_grad_value_", lambda original: _clip(recorder, original, "value")
        )


def _made(recorder: Recorder, original: Method[Any, P, None]) -> Method[Any, P, None]:
    hub = recorder.hub

    def __init__(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> None:
        original(self, *args, **kwargs)
        caller = sys._getframe(1)

        def say() -> None:
            frame = outside(self, caller)
            hub.sample(why=("made", frame.f_code, frame.f_lasti))
            hub.made(self, frame)
            if hub.sampling:  # weights that were put back begin something new
                hub.gradients_used(frame)
            thing = recorder.things.optimizer(self, recorder.place(frame))
            recorder.emit(Made, frame, thing=thing)

        hub.guarded(say)

    return __init__


def outside(made: object, frame: FrameType) -> FrameType:
    """Where an object is made, rather than its class's own constructor."""
    makers = (vars(kind).get("__init__") for kind in type(made).__mro__)
    own = {getattr(maker, "__code__", None) for maker in makers}
    while frame.f_back is not None and frame.f_code in own:
        frame = frame.f_back
    return frame


def _zero_grad(recorder: Recorder, original: Method[Any, P, None]) -> Method[Any, P, None]:
    hub = recorder.hub

    def zero_grad(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if not is_compiling() and hub.sampling:
            hub.guarded(_used_by_then, hub, self, sys._getframe(1))
        original(self, *args, **kwargs)
        if not is_compiling() and hub.sampling:
            frame = sys._getframe(1)

            def say() -> None:
                recorder.emit(ZeroGrad, frame, target=recorder.things.optimizer(self))
                hub.gradients_written()

            hub.guarded(say)

    return zero_grad


DEEP = 4
"""Calls within a `step` of the user's own that are looked through."""


def _used_by_then(hub: Hub, optimizer: Optimizer, frame: FrameType) -> None:
    """The `step` of a class that is not torch's may have updated before it clears."""
    code = getattr(unwrap(type(optimizer).step), "__code__", None)
    if type(optimizer).__module__.startswith("torch.optim"):
        return
    outer: FrameType | None = frame
    for _ in range(DEEP):
        if outer is None:
            return
        if outer.f_code is code:
            hub.gradients_used(frame)
            return
        outer = outer.f_back


def _before_step(recorder: Recorder) -> Any:
    hub = recorder.hub

    def hook(optimizer: Optimizer, args: Args, kwargs: Kwargs) -> None:
        if is_compiling():
            return
        if hub.sampling:
            frame = sys._getframe(1)
            hub.guarded(hub.gradients_used, frame)
            hub.before_step(optimizer, frame)
        if hub.timer.on:
            hub.timer.steps()

    return hook


def _hook(original: _Register, stepped: _Hook, over: set[int]) -> _Register:
    """A step is over before the program's own hooks after it run, which may clear gradients; torch
    calls those before the hooks for all optimizers.

    over: optimizers whose step was seen to be over, until the last of the hooks.
    """

    def register_step_post_hook(owner: Optimizer, hook: _Hook) -> object:
        def run(optimizer: Optimizer, args: Args, kwargs: Kwargs) -> None:
            if over.isdisjoint((ENDED, id(optimizer))):
                stepped(optimizer, args, kwargs)
                over.add(id(optimizer))
            try:
                hook(optimizer, args, kwargs)
            except BaseException:
                over.discard(id(optimizer))
                raise

        return original(owner, run)

    return register_step_post_hook


def _after_step(recorder: Recorder, over: set[int]) -> _Hook:
    hub = recorder.hub
    between = hub.unsampled

    def hook(optimizer: Optimizer, args: Args, kwargs: Kwargs) -> None:
        if is_compiling():
            return
        if over and id(optimizer) in over:
            over.discard(id(optimizer))
            return
        if between.on:
            if between.open and between.optimizer() is optimizer:
                between.open = False
                between.ends.append(len(between.numbers))
                hub.updates += 1
                between.left -= 1
                if not between.left:
                    hub.guarded(between.leave)
                return
            hub.guarded(between.leave)
        if hub.timer.on:
            hub.timer.has_stepped(optimizer)
        hub.guarded(recorder.things.note_step, optimizer)
        frame = sys._getframe(1)
        if hub.sampling:
            # The first is the optimizer.
            closure = any(callable(each) for each in (*args[1:], kwargs.get("closure")))
            hub.guarded(_stepped, recorder, optimizer, closure, frame)
        try:
            if hub.follows_training and not dispatch_modes():
                with no_torch_function():
                    hub.optimizer_stepped(optimizer, frame)
        except Exception as error:  # whatever it is, the program continues
            hub.failed(error)
        hub.updated()
        if hub.timer.on:
            hub.timer.turn(optimizer)

    return hook


def _stepped(recorder: Recorder, optimizer: Optimizer, closure: bool, frame: FrameType) -> None:
    hub = recorder.hub
    track, things = recorder.track(), recorder.things
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

    event = recorder.emit(
        OptimizerStep,
        frame,
        late,
        optimizer=things.optimizer(optimizer),
        closure=closure,
        applied=frozenset(
            id(each) for each in inspection.parameters_of(optimizer) if each.grad is not None
        ),
    )
    if event is not None:
        hub.after_step(optimizer, event, frame)
    hub.parameters_written()
    hub.gradients_written()


def _scaler_made(recorder: Recorder, original: Method[Any, P, None]) -> Method[Any, P, None]:
    hub = recorder.hub

    def __init__(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> None:
        original(self, *args, **kwargs)
        frame = sys._getframe(1)
        hub.guarded(
            lambda: recorder.emit(
                Made, frame, thing=recorder.things.scaler(self, recorder.place(frame))
            ),
        )

    return __init__


def _scale(recorder: Recorder, original: Method[Any, P, R]) -> Method[Any, P, R]:
    hub = recorder.hub

    def scale(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result = original(self, *args, **kwargs)
        if hub.sampling or hub.checks_finite or hub.follows_training:
            given = args[0] if args else kwargs.get("outputs")
            hub.guarded(_scaled, recorder, self, given, result)
        return result

    return scale


def _is_on(scaler: Any) -> bool:
    return inspection.held(scaler, "_enabled") is True


def _scaled(recorder: Recorder, scaler: Any, given: Any, result: Any) -> None:
    hub = recorder.hub
    from dataclasses import replace

    if not _is_on(scaler):
        return
    hub.loss_scaled(given, result)
    if not hub.sampling:
        return
    for each in autograd_graph.tensors_in(result):
        plain = autograd_graph.tensor_of(each, recorder.things)
        thing = replace(plain, scaled_by=recorder.things.scaler(scaler))
        recorder.things.tensors.put(each, thing)
        autograd_graph.note(each, thing)


def _unscale(recorder: Recorder, original: Method[Any, P, None]) -> Method[Any, P, None]:
    hub = recorder.hub

    def unscale_(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if hub.sampling:
            hub.guarded(hub.gradients_used, sys._getframe(1))
        original(self, *args, **kwargs)
        if hub.sampling:
            frame, things = sys._getframe(1), recorder.things
            optimizer: Any = args[0] if args else kwargs.get("optimizer")

            def say() -> None:
                if not _is_on(self) or recorder.track().scaler is not None:
                    return
                recorder.emit(
                    Unscale,
                    frame,
                    scaler=things.scaler(self),
                    optimizer=things.optimizer(optimizer),
                )
                hub.gradients_written()

            hub.guarded(say)

    return unscale_


def _scaler_step(recorder: Recorder, original: Method[Any, P, R]) -> Method[Any, P, R]:
    hub = recorder.hub

    def step(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        track = hub.guarded(recorder.track) if hub.sampling else None
        if track is None:
            return original(self, *args, **kwargs)
        track.scaler, track.scaler_stepped = self, False
        try:
            result = original(self, *args, **kwargs)
        finally:
            # It has skipped the update, or refuses a second one: asked for all the same.
            if not track.scaler_stepped:
                optimizer: Any = args[0] if args else kwargs.get("optimizer")
                hub.guarded(_stepped, recorder, optimizer, False, sys._getframe(1))
            track.scaler = None
        return result

    return step


def _scaler_update(recorder: Recorder, original: Method[Any, P, None]) -> Method[Any, P, None]:
    hub = recorder.hub

    def update(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> None:
        original(self, *args, **kwargs)
        if hub.sampling:
            frame = sys._getframe(1)
            hub.guarded(
                lambda: recorder.emit(ScalerUpdate, frame, scaler=recorder.things.scaler(self)),
            )

    return update


def _scale_asked(recorder: Recorder, original: Method[object, P, R]) -> Method[object, P, R]:
    """The program may bring its limit to the scale: `clip_grad_norm_(p, limit * get_scale())`."""
    hub = recorder.hub

    def get_scale(self: object, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result = original(self, *args, **kwargs)
        hub.guarded(_note_scale, recorder, result)
        return result

    return get_scale


def _note_scale(recorder: Recorder, scale: object) -> None:
    recorder.track().scale_asked = inspection.number(scale)


def _clip(recorder: Recorder, original: Callable[..., R], by: str) -> Callable[..., R]:
    hub = recorder.hub
    key = "max_norm" if by == "norm" else "clip_value"

    def clip(*args: Any, **kwargs: Any) -> R:
        if is_compiling() or not hub.sampling:
            return original(*args, **kwargs)
        frame = sys._getframe(1)
        hub.guarded(hub.gradients_used, frame)  # what was done by hand before is not the clipping's
        limit = args[1] if len(args) > 1 else kwargs.get(key)
        parameters = args[0] if args else kwargs.get("parameters")
        seen = parameters
        if type(parameters) in _ONCE:
            seen = []  # it can be gone through once: noted is what is given out
            noting = hub.guarded(_noting, parameters, seen)
            if noting is not None and args:
                args = (noting, *args[1:])
            elif noting is not None:
                kwargs["parameters"] = noting
        result = original(*args, **kwargs)
        hub.guarded(_clipped, recorder, seen, limit, by, frame)
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


def _clipped(recorder: Recorder, given: Any, limit: Any, by: str, frame: FrameType) -> None:
    hub = recorder.hub
    held = [given] if inspection.is_tensor(given) else _parts(given)
    models, loose = recorder.things.models_of(held)
    number = inspection.number(limit)
    scale = recorder.track().scale_asked
    recorder.emit(
        Clip,
        frame,
        lambda place, serial: {"result_used": source_map.result_used(place)},
        models=models,
        complete=bool(held) and not loose,
        by=by,
        limit=number,
        times_scale=bool(number and scale and number >= _LEAST_LIMIT * scale),
    )
    hub.gradients_written()


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
