"""State: taken, kept in files, read from them, loaded again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.objects import inspection, state_dicts
from trueloop.doctor.live.processes import rank_identity
from trueloop.doctor.model.events import FileLoaded, FileSaved, StateDictCreated, StateDictLoaded
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import Checkpoint, Model, StateDict

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    for owner in (torch, torch.serialization):
        patches.replace(owner, "save", lambda original: _save(recorder, original))
        patches.replace(owner, "load", lambda original: _load(recorder, original))
    patches.replace(nn.Module, "state_dict", lambda original: _state_dict(recorder, original))
    for kind in (nn.Module, torch.optim.Optimizer):
        patches.replace(
            kind, "load_state_dict", lambda original: _load_state_dict(recorder, original)
        )


def _wake(recorder: Recorder, why: str, frame: Any) -> bool:
    """It happens seldom, and mostly when nothing else is looked at."""
    hub = recorder.hub
    hub.sample(why=(why, frame.f_code, frame.f_lasti))
    return hub.sampling and not recorder.track().quiet


def _save(recorder: Recorder, original: Any) -> Any:
    hub = recorder.hub

    def save(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        # Before, because what is written may be changed as soon as it is.
        hub.guarded(lambda: _saved(recorder, args, kwargs, frame))
        return original(*args, **kwargs)

    return save


def _saved(recorder: Recorder, args: Any, kwargs: Any, frame: Any) -> None:
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
    )


def _load(recorder: Recorder, original: Any) -> Any:
    hub = recorder.hub

    def load(*args: Any, **kwargs: Any) -> Any:
        value = original(*args, **kwargs)
        frame = sys._getframe(1)
        hub.guarded(lambda: _loaded(recorder, value, args, kwargs, frame))
        return value

    return load


def _loaded(recorder: Recorder, value: Any, args: Any, kwargs: Any, frame: Any) -> None:
    if not _wake(recorder, "load", frame):
        return
    path = state_dicts.path_of(args[0] if args else kwargs.get("f"))
    thing = recorder.states.loaded(value, path, recorder.place(frame))
    safely = kwargs.get("weights_only")
    recorder.emit(FileLoaded, frame, file=path, weights_only=safely, value=thing)


def _state_dict(recorder: Recorder, original: Any) -> Any:
    hub = recorder.hub

    def state_dict(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        state = original(self, *args, **kwargs)
        if not args and kwargs.get("destination") is None:  # else it was asked by its parent
            frame = sys._getframe(1)
            hub.guarded(lambda: _taken(recorder, self, state, frame))
        return state

    return state_dict


def _taken(recorder: Recorder, module: nn.Module, state: Any, frame: Any) -> None:
    if not _wake(recorder, "state", frame):
        return
    owner = recorder.things.model(module)
    taken = recorder.states.taken(state, owner, recorder.place(frame))
    taken.conditional = source_map.is_conditional(taken.made)
    if owner.wrapper:
        _describe(taken, owner, taken.made)
    recorder.emit(StateDictCreated, frame, state=taken)


def _describe(state: StateDict, owner: Model, place: Location) -> None:
    """A wrapper's prefix, read from its source."""
    name = source_map.spelled(place).rpartition(".")[2]
    state.loaded_back = source_map.calls_method(place.path, name, "load_state_dict")
    state.prefix_known = source_map.speaks_of(
        place.path, ("module.", "_orig_mod.", "model._orig_mod")
    )


def _load_state_dict(recorder: Recorder, original: Any) -> Any:
    hub = recorder.hub

    def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        frame = sys._getframe(1)
        hub.guarded(lambda: _given(recorder, self, args, kwargs, result, frame))
        return result

    return load_state_dict


def _given(
    recorder: Recorder, target: Any, args: Any, kwargs: Any, result: Any, frame: Any
) -> None:
    if not _wake(recorder, "restore", frame):
        return
    things = recorder.things
    is_module = inspection.is_a(target, nn.Module)
    thing: Any = things.model(target) if is_module else things.optimizer(target)
    state = recorder.states.of(args[0] if args else kwargs.get("state_dict"))
    strict = args[1] if len(args) > 1 else kwargs.get("strict", True)

    def late(place: Location, serial: int) -> dict[str, Any]:
        written = source_map.written(place, 1, "strict")
        if isinstance(state, Checkpoint):
            state.saved_in_part = source_map.saves_parts(place.path)
        return {
            # As an option it is somebody's decision.
            "strict": None if strict is False and written != "False" else strict,
            "result_used": source_map.result_used(place),
            "missing": tuple(inspection.entries(getattr(result, "missing_keys", ()))),
        }

    recorder.emit(
        StateDictLoaded, frame, late, thing=thing, state=state, assign=kwargs.get("assign") is True
    )
