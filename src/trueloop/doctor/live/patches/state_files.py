"""State: taken, kept in files, read from them, loaded again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import lr_scheduler

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.objects import inspection, state_dicts
from trueloop.doctor.live.processes import rank_identity
from trueloop.doctor.model.events import FileLoaded, FileSaved, StateDictCreated, StateDictLoaded
from trueloop.doctor.model.file_paths import FilePath
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import NOWHERE, Checkpoint, Model, StateDict

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import Args, Kwargs, P, R
    from trueloop.doctor.live.patches.patching import FinishedCall, Patches
    from trueloop.doctor.live.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    hub = recorder.hub
    for owner in (torch, torch.serialization):
        patches.replace(owner, "save", partial(_save, recorder))
        patches.after(hub, owner, "load", partial(_loaded, recorder))
    patches.after(hub, nn.Module, "state_dict", partial(_taken, recorder))
    for kind in (nn.Module, torch.optim.Optimizer):
        patches.after(hub, kind, "load_state_dict", partial(_given, recorder))
    for scheduler in vars(lr_scheduler).values():
        own = isinstance(scheduler, type) and scheduler.__module__ == lr_scheduler.__name__
        if own and "load_state_dict" in vars(scheduler):
            patches.after(hub, scheduler, "load_state_dict", partial(_positioned, recorder))


def _wake(recorder: Recorder, why: str, frame: FrameType) -> bool:
    """It happens seldom, and mostly when nothing else is looked at."""
    hub = recorder.hub
    hub.sample(why=(why, frame.f_code, frame.f_lasti))
    return hub.sampling and not recorder.track().quiet


def _save(recorder: Recorder, original: Callable[P, R]) -> Callable[P, R]:
    hub = recorder.hub

    def save(*args: P.args, **kwargs: P.kwargs) -> R:
        frame = sys._getframe(1)
        # Before, because what is written may be changed as soon as it is.
        hub.guarded(lambda: _saved(recorder, args, kwargs, frame))
        return original(*args, **kwargs)

    return save


def _saved(recorder: Recorder, args: Args, kwargs: Kwargs, frame: FrameType) -> None:
    if not _wake(recorder, "save", frame):
        return
    given = args[0] if args else kwargs.get("obj")
    file = state_dicts.path_of(args[1] if len(args) > 1 else kwargs.get("f"))
    here = user_frames.sites(frame)
    recorder.emit(
        FileSaved,
        frame,
        lambda place, serial: {"by_rank": rank_identity.differs(file, place, here)},
        value=recorder.states.of(given),
        file=file,
        path=FilePath(file),
    )


def _loaded(recorder: Recorder, call: FinishedCall) -> None:
    if not _wake(recorder, "load", call.frame):
        return
    path = state_dicts.path_of(call.argument(0, "f"))
    thing = recorder.states.loaded(call.result, path, recorder.place(call.frame))
    safely = call.kwargs.get("weights_only")
    recorder.emit(
        FileLoaded, call.frame, file=path, path=FilePath(path), weights_only=safely, value=thing
    )


def _taken(recorder: Recorder, call: FinishedCall) -> None:
    module, *more = call.args
    if more or call.kwargs.get("destination") is not None:
        return  # it was asked by its parent
    awake = _wake(recorder, "state", call.frame)
    if recorder.track().quiet:
        return
    made = recorder.place(call.frame)
    conditional = _is_conditional(call.frame)
    if not awake and not conditional:
        return  # the same as before; the best so far is taken ever more rarely
    owner = recorder.things.model(module)
    taken = recorder.states.taken(call.result, owner, made)
    taken.conditional = conditional
    if owner.wrapper:
        _describe(taken, owner, taken.made)
    recorder.emit(StateDictCreated, call.frame, always=True, state=taken)


def _is_conditional(frame: FrameType) -> bool:
    """It is taken under an `if`: where that is, or where who gets it returned calls."""
    place, stack = user_frames.user_place(user_frames.sites(frame))
    callers = iter(reversed(stack))
    while not source_map.is_conditional(place) and source_map.is_returned(place):
        place = next(callers, NOWHERE)
    return source_map.is_conditional(place) and not _every_nth(place)


def _every_nth(place: Location) -> bool:
    """A line is reached at every n-th turn, and not for the sake of a better value."""
    tests = " ".join(source_map.tests_above(place.path, place.line))
    return " % " in tests and not any(sign in tests for sign in "<>")


def _describe(state: StateDict, owner: Model, place: Location) -> None:
    """A wrapper's prefix, read from its source."""
    name = source_map.spelled(place).rpartition(".")[2]
    state.loaded_back = source_map.calls_method(place.path, name, "load_state_dict")
    state.prefix_known = source_map.handles_prefix(place.path)


def _positioned(recorder: Recorder, call: FinishedCall) -> None:
    """A schedule continues where an earlier run ended; one inside of others comes with them."""
    if not _wake(recorder, "restore", call.frame):
        return
    thing = recorder.things.scheduler(call.args[0])
    state = recorder.states.of(call.argument(1, "state_dict"))
    recorder.emit(StateDictLoaded, call.frame, thing=thing, state=state)


def _given(recorder: Recorder, call: FinishedCall) -> None:
    if not _wake(recorder, "restore", call.frame):
        return
    things, target = recorder.things, call.args[0]
    is_module = inspection.is_a(target, nn.Module)
    thing = things.model(target) if is_module else things.optimizer(target)
    given = call.argument(1, "state_dict")
    state = recorder.states.whole(recorder.states.of(given), given)
    strict = call.argument(2, "strict", True)

    def late(place: Location, serial: int) -> dict[str, Any]:
        written = source_map.written(place, 1, "strict")
        if isinstance(state, Checkpoint):
            state.saved_in_part = source_map.saves_parts(place.path)
        return {
            # As an option it is somebody's decision.
            "strict": None if strict is False and written != "False" else strict,
            "result_used": source_map.result_used(place),
            "missing": tuple(inspection.entries(getattr(call.result, "missing_keys", ()))),
            "unexpected": tuple(inspection.entries(getattr(call.result, "unexpected_keys", ()))),
        }

    assign = call.kwargs.get("assign") is True
    recorder.emit(StateDictLoaded, call.frame, late, thing=thing, state=state, assign=assign)
