"""Processes that train together: the group, the wrappers, what is moved when it is wrapped."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn
from torch.compiler import is_compiling

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.patches.import_hook import Arrival
from trueloop.doctor.live.processes import rank_identity
from trueloop.doctor.model.events import Made, Moved, Used

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.recorder import Recorder

_FSDP = "torch.distributed.fsdp.fully_sharded_data_parallel"
_DTYPES = ("half", "float", "double", "bfloat16")
_COLLECTIVES = "all_reduce all_gather reduce broadcast all_gather_into_tensor reduce_scatter_tensor"


def install(recorder: Recorder, patches: Patches) -> None:
    for wrapper in (nn.parallel.DistributedDataParallel, nn.DataParallel):
        patches.replace(wrapper, "__init__", lambda original: _wrapped(recorder, original))

    def sharded() -> None:
        kind: type = sys.modules[_FSDP].FullyShardedDataParallel
        patches.replace(kind, "__init__", lambda original: _wrapped(recorder, original))

    arrival = Arrival(_FSDP, sharded)
    arrival.await_it()
    patches.add(arrival.withdraw)
    patches.replace(torch, "compile", lambda original: _compile(recorder, original))
    for name in ("to", "cuda", "cpu", *_DTYPES):
        patches.replace(nn.Module, name, partial(_move, recorder, name))
    if dist.is_available():
        for name in ("init_process_group", *_COLLECTIVES.split()):
            patches.replace(dist, name, partial(_used, recorder, name))


def _wrapped(recorder: Recorder, original: Any) -> Any:
    hub = recorder.hub

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        frame = sys._getframe(1)
        devices = kwargs.get("device_ids", kwargs.get("device_id"))
        devices = args[1] if devices is None and len(args) > 1 else devices
        hub.guarded(lambda: _say_made(recorder, self, devices, frame))

    return __init__


def _compile(recorder: Recorder, original: Any) -> Any:
    hub = recorder.hub

    def compile(*args: Any, **kwargs: Any) -> Any:
        hub.guarded(hub.compiles)
        made = original(*args, **kwargs)
        if isinstance(made, nn.Module):
            frame = sys._getframe(1)
            hub.guarded(lambda: _say_made(recorder, made, None, frame))
        return made

    return compile


def _say_made(recorder: Recorder, wrapper: nn.Module, devices: Any, frame: Any) -> None:
    hub = recorder.hub
    place = recorder.place(frame)
    hub.sample(why=("made", frame.f_code, frame.f_lasti))
    model = recorder.things.model(wrapper)
    model.made, model.name = place, source_map.assigned_to(place)
    model.device_ids = devices is not None
    if dist.is_available() and dist.is_initialized():
        model.ranks = dist.get_world_size()
    recorder.emit(Made, frame, thing=model)


def _move(recorder: Recorder, name: str, original: Any) -> Any:
    hub = recorder.hub

    def move(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
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
    first = next(module.parameters(), None)
    return None if first is None else (first.device, first.dtype)


def _moved(
    recorder: Recorder, module: nn.Module, name: str, before: tuple[Any, Any] | None, frame: Any
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


def _used(recorder: Recorder, name: str, original: Any) -> Any:
    hub = recorder.hub

    def used(*args: Any, **kwargs: Any) -> Any:
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
