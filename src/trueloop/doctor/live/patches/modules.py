"""Modules: made, called, switched between training and evaluation."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

from torch import nn
from torch.compiler import is_compiling
from torch.nn.modules import module as registration

from trueloop.doctor.live.frames import new_batches, source_map, user_frames
from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.objects.registry import ObjectRegistry
from trueloop.doctor.model.events import ModelForward, ModeSet, ZeroGrad
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import LoadedPartReplaced
from trueloop.doctor.model.things import Model, Tensor
from trueloop.doctor.model.vocabulary import MODE_DEPENDENT_LAYERS

if TYPE_CHECKING:
    import torch

    from trueloop.doctor.live.hub import CallArguments, Method, P, R
    from trueloop.doctor.live.patches.patching import FinishedCall, Patches
    from trueloop.doctor.live.recorder import Recorder
    from trueloop.doctor.live.track import Track


def install(recorder: Recorder, patches: Patches) -> None:
    hub = recorder.hub
    for hook in (
        registration.register_module_module_registration_hook(_module_registered(recorder)),
        registration.register_module_parameter_registration_hook(_parameter_registered(recorder)),
    ):
        patches.add(hook.remove)
    patches.after(hub, nn.Module, "__setstate__", partial(_restored, recorder))
    patches.after(
        hub, nn.Module, "load_state_dict", lambda call: recorder.registrations.read(call.args[0])
    )
    hub.call_patch = patches.replace(nn.Module, "__call__", partial(_call, recorder))
    patches.replace(nn.Module, "train", partial(_train, recorder))
    patches.replace(nn.Module, "zero_grad", partial(_zero_grad, recorder))


def _module_registered(recorder: Recorder) -> Any:
    hub = recorder.hub

    def hook(parent: nn.Module, name: str, child: Any) -> None:
        frame = sys._getframe(1)
        hub.guarded(recorder.things.registered, parent, child)
        hub.guarded(_take_place, recorder, parent, name, child, frame)

    return hook


def _take_place(
    recorder: Recorder, parent: nn.Module, name: str, child: nn.Module | None, frame: FrameType
) -> None:
    if recorder.registrations.module(parent, name, child, frame):
        recorder.emit(LoadedPartReplaced, frame, model=recorder.things.model(parent))


def _parameter_registered(recorder: Recorder) -> Any:
    hub = recorder.hub

    def hook(module: nn.Module, name: str, parameter: torch.Tensor) -> None:
        if parameter is not None:
            frame = sys._getframe(1)
            hub.guarded(recorder.things.owned, module, parameter)
            hub.guarded(recorder.registrations.parameter, module, name, parameter, frame)

    return hook


def _restored(recorder: Recorder, call: FinishedCall) -> None:
    recorder.things.adopt(call.args[0])
    recorder.registrations.loaded.put(call.args[0], True)


def _call(recorder: Recorder, original: Method[nn.Module, P, R]) -> Method[nn.Module, P, R]:
    hub = recorder.hub
    clock, calls = hub.timer, hub.calls

    def __call__(self: nn.Module, /, *args: P.args, **kwargs: P.kwargs) -> R:
        # The compiler must not read the flag: it would compile again whenever that changes.
        if is_compiling():
            return original(self, *args, **kwargs)
        if clock.on and clock.enter("forward"):
            return clock.run("forward", __call__, self, *args, **kwargs)
        if not hub.sampling:
            if calls.holds and id(self) in calls.roots and hub.checks_finite:
                return calls.run(original, self, args, kwargs, sys._getframe(1))
            return original(self, *args, **kwargs)
        track = hub.guarded(recorder.track) if recorder.can_read(args, kwargs) else None
        if track is None:
            return original(self, *args, **kwargs)
        track.depth += 1
        track.inside.append(self)
        call = None
        if track.depth == 1:
            call = hub.guarded(_enters, recorder, track, (args, kwargs), sys._getframe(1))
        if not self.__dict__.get("_modules"):
            hub.entered(self, args, track.inside)
        try:
            output = original(self, *args, **kwargs)
        finally:
            track.depth -= 1
            if track.inside:
                track.inside.pop()
        if call is not None:
            hub.guarded(calls.done, call, output, look=True)
        if track.inside and hub.sampling:
            hub.called(self, track.inside, output)
        if track.depth <= 0 and hub.sampling:
            track.depth = 0
            hub.guarded(_forward, recorder, self, (args, kwargs), output, sys._getframe(1))
        return output

    return __call__


def _enters(recorder: Recorder, track: Track, given: CallArguments, frame: FrameType) -> Any:
    """A module is about to be called from outside of any other; returns the call, if it is kept."""
    hub = recorder.hub
    module = track.inside[-1]
    if hub.checks_finite and hub.calls.takes(module):
        return hub.calls.begin(module, given[0], given[1], frame, look=True)
    return None


def _forward(
    recorder: Recorder, module: nn.Module, given: CallArguments, output: object, frame: FrameType
) -> None:
    """Say that a module was called from outside of any other."""
    hub = recorder.hub
    if not _counts(module):
        return
    things = recorder.things
    model = things.model(module)
    inputs = tuple(
        autograd_graph.tensor_of(each, things) for each in autograd_graph.tensors_in(given)
    )
    outputs = list(autograd_graph.tensors_in(output))
    learning = inspection.learning_layers(module)
    trained = learning > 0

    def late(place: Location, serial: int) -> dict[str, Any]:
        spelled, callee = source_map.callee_of(place)
        model.name = model.name or spelled
        turns = recorder.track().turns.now()
        made = [_output(each, model, trained, inputs, serial, things) for each in outputs]
        return {
            "spelled": spelled,
            "callee": callee,
            "result_used": source_map.result_used(place),
            "output": made[0] if made else None,
            "fetched": turns[-1].index + 1 if turns and new_batches.draws_batch(place) else 0,
        }

    named = {**{str(i): each for i, each in enumerate(given[0])}, **given[1]}
    flags = frozenset((name, each) for name, each in named.items() if type(each) is bool)
    on_purpose = any(
        source_map.turns_recording_on(each.f_code.co_filename, each.f_lineno)
        for each in user_frames.frames_of_user(frame)
    )
    event = recorder.emit(
        ModelForward, frame, late, model=model, training=module.training, inputs=inputs,
        flags=flags, grad_known=not on_purpose, learning=learning,
    )  # fmt: skip
    if event is not None:
        hub.after_forward(module, given, output, event)


def _output(
    tensor: torch.Tensor,
    model: Model,
    trained: bool,
    inputs: tuple[Tensor, ...],
    serial: int,
    things: ObjectRegistry,
) -> Tensor:
    """The thing for what a module gave, noted on its graph."""
    inner = autograd_graph.tensor_of(tensor, things)
    linked = [each for each in inputs if each.graph or each.inputs] if inner.graph else []
    made = replace(
        inner,
        models=frozenset({model} if trained and inner.graph else ()).union(
            *(each.models for each in linked)
        ),
        inputs=frozenset().union(*(each.inputs for each in linked)),
        forwards=frozenset({serial} if inner.graph else ()).union(
            *(each.forwards for each in linked)
        ),
    )
    things.tensors.put(tensor, made)
    autograd_graph.note(tensor, made)
    return made


def _counts(module: nn.Module) -> bool:
    """It has something to learn, or behaves differently in training and evaluation: no mere loss
    function or activation."""
    if next(inspection.weights(module), None) is not None:
        return True
    return any(type(each).__name__ in MODE_DEPENDENT_LAYERS for each in module.modules())


def _train(recorder: Recorder, original: Method[nn.Module, P, R]) -> Method[nn.Module, P, R]:
    hub = recorder.hub

    def train(self: nn.Module, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if is_compiling():
            return original(self, *args, **kwargs)
        track = hub.guarded(recorder.track)
        if track is None or track.switching:
            return original(self, *args, **kwargs)
        track.switching = True
        before = self.__dict__.get("training")
        try:
            result = original(self, *args, **kwargs)
        finally:
            track.switching = False
        mode = args[0] if args else kwargs.get("mode", True)
        hub.guarded(_switched, recorder, self, (before, mode), sys._getframe(1))
        return result

    return train


def _switched(
    recorder: Recorder, module: nn.Module, modes: tuple[Any, Any], frame: FrameType
) -> None:
    hub = recorder.hub
    before, mode = modes  # the latter is a bool: torch has checked it
    if before != mode and module.training == mode:
        hub.mode_switched(module, mode)
    caller = (frame.f_back if frame.f_code.co_name == "eval" else None) or frame
    hub.sample(why=("mode", caller.f_code, caller.f_lasti))
    if hub.sampling:
        model = recorder.things.model(module)
        if mode and (asks := _who_asks_for_eval(frame)) is not None:
            recorder.emit(ModeSet, asks, model=model, training=False)
        recorder.emit(ModeSet, frame, model=model, training=mode)
    else:
        recorder.mode_unseen()


def _who_asks_for_eval(frame: FrameType) -> FrameType | None:
    """The caller of torch's `eval()`, which has called the `train(False)` of the user's class, in
    whose frame this is."""
    outer = frame.f_back if frame.f_code.co_name == "train" else None
    is_eval = outer is not None and outer.f_code is nn.Module.eval.__code__
    return outer.f_back if outer is not None and is_eval else None


def _zero_grad(
    recorder: Recorder, original: Method[nn.Module, P, None]
) -> Method[nn.Module, P, None]:
    hub = recorder.hub

    def zero_grad(self: nn.Module, /, *args: P.args, **kwargs: P.kwargs) -> None:
        original(self, *args, **kwargs)
        if not is_compiling() and hub.sampling:
            frame = sys._getframe(1)

            def say() -> None:
                recorder.emit(ZeroGrad, frame, target=recorder.things.model(self))
                hub.gradients_written()

            hub.guarded(say)

    return zero_grad
