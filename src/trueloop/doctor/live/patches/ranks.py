"""Processes that train together: the group, the wrappers, what is moved when it is wrapped."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn
from torch.compiler import is_compiling

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.patches.import_hook import ImportHook
from trueloop.doctor.live.processes import rank_identity
from trueloop.doctor.model.events import Made, Moved, Used

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import Method, P, R
    from trueloop.doctor.live.patches.patching import FinishedCall, Patches
    from trueloop.doctor.live.recorder import Recorder

_FSDP = "torch.distributed.fsdp.fully_sharded_data_parallel"
_DTYPES = ("half", "float", "double", "bfloat16")
_COLLECTIVES = "all_reduce all_gather reduce broadcast all_gather_into_tensor reduce_scatter_tensor"


def install(recorder: Recorder, patches: Patches) -> None:
    for wrapper in (nn.parallel.DistributedDataParallel, nn.DataParallel):
        patches.after(recorder.hub, wrapper, "__init__", partial(_wrapped, recorder))

    def sharded() -> None:
        kind: type = sys.modules[_FSDP].FullyShardedDataParallel
        patches.after(recorder.hub, kind, "__init__", partial(_wrapped, recorder))

    arrival = ImportHook(_FSDP, sharded)
    arrival.await_it()
    patches.add(arrival.withdraw)
    patches.replace(torch, "compile", partial(_compile, recorder))
    for name in ("to", "cuda", "cpu", *_DTYPES):
        patches.replace(nn.Module, name, partial(_move, recorder, name))
    if dist.is_available():
        for name in ("init_process_group", *_COLLECTIVES.split()):
            patches.replace(dist, name, partial(_used, recorder, name))


def _wrapped(recorder: Recorder, call: FinishedCall) -> None:
    devices = call.kwargs.get("device_ids", call.kwargs.get("device_id"))
    devices = call.args[2] if devices is None and len(call.args) > 2 else devices
    _say_made(recorder, call.args[0], devices, call.frame)


def _compile(recorder: Recorder, original: Callable[P, R]) -> Callable[P, R]:
    hub = recorder.hub

    def compile(*args: P.args, **kwargs: P.kwargs) -> R:
        hub.guarded(hub.compiles)
        made = original(*args, **kwargs)
        if isinstance(made, nn.Module):
            frame = sys._getframe(1)
            hub.guarded(lambda: _say_made(recorder, made, None, frame))
        return made

    return compile


def _say_made(recorder: Recorder, wrapper: nn.Module, devices: Any, frame: FrameType) -> None:
    hub = recorder.hub
    place = recorder.place(frame)
    hub.sample(why=("made", frame.f_code, frame.f_lasti))
    model = recorder.things.model(wrapper)
    model.made, model.name = place, source_map.assigned_to(place)
    model.device_ids = devices is not None
    if dist.is_available() and dist.is_initialized():
        model.ranks = dist.get_world_size()
    recorder.emit(Made, frame, thing=model)


def _move(
    recorder: Recorder, name: str, original: Method[nn.Module, P, R]
) -> Method[nn.Module, P, R]:
    hub = recorder.hub

    def move(self: nn.Module, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if is_compiling() or not hub.sampling or not dist.is_available():
            return original(self, *args, **kwargs)
        before = hub.guarded(_whereabouts, self)
        result = original(self, *args, **kwargs)
        if hub.sampling:
            frame = sys._getframe(1)
            hub.guarded(lambda: _moved(recorder, self, name, before, frame))
        return result

    return move


def _whereabouts(module: nn.Module) -> tuple[Any, Any] | None:
    first = next(inspection.weights(module), None)
    return None if first is None else (first.device, first.dtype)


def _moved(
    recorder: Recorder,
    module: nn.Module,
    name: str,
    before: tuple[Any, Any] | None,
    frame: FrameType,
) -> None:
    after = _whereabouts(module)
    if before is None or after is None:
        return
    place = recorder.place(frame)
    written = source_map.written(place, 0, "device") if name == "to" else name
    moved, cast = before[0] != after[0], before[1] != after[1]
    # Where there is one device only, a move to "the device" comes to nothing: elsewhere it would
    # not. A device asked for by its name is not moved.
    dry = after[0].type == "cpu" and "cpu" not in written and "dtype" not in written
    if not (moved or cast or (dry and name in ("to", "cuda"))):
        return
    how = "both" if moved and cast else "dtype" if cast else "device"
    to = str(after[1]).rpartition(".")[2] if cast else ""
    recorder.emit(Moved, frame, model=recorder.things.model(module), how=how, to=to)


def _used(recorder: Recorder, name: str, original: Callable[P, R]) -> Callable[P, R]:
    hub = recorder.hub

    def used(*args: P.args, **kwargs: P.kwargs) -> R:
        result = original(*args, **kwargs)
        if name == "init_process_group":
            hub.guarded(rank_identity.remembered, hub)  # known also when the group is gone
        if not is_compiling() and hub.sampling:
            frame = sys._getframe(1)
            what = f"torch.distributed.{name}"
            group = dist.get_world_size() if dist.is_initialized() else 0
            hub.guarded(lambda: recorder.emit(Used, frame, what=what, ranks=group))
            if name != "init_process_group":
                tensor = args[0] if args else kwargs.get("tensor")
                hub.summed(name, tensor, frame)
        return result

    return used
