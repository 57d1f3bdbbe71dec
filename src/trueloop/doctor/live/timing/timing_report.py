"""The timer's measurements, for the rules to judge."""

from __future__ import annotations

import ast
import dataclasses
import os
import re
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.timing.step_timing import Fetches
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.speed_measurements import (
    DataWait,
    DeviceRead,
    DeviceTransfer,
    GradientNorms,
    MatrixProducts,
    OptimizerTime,
    TimedUpdates,
    WorkerStarts,
)

if TYPE_CHECKING:
    from trueloop.doctor.live.timing.step_timer import StepTimer
    from trueloop.doctor.live.timing.step_timing import Speed

_PARAMETERS = re.compile(r"param|grad|weight", re.I)
_PRODUCTS = (nn.Linear, nn.Bilinear, nn.MultiheadAttention, nn.RNNBase, nn.RNNCellBase)


def tell(clock: StepTimer) -> None:
    """Emit one measurement of each thing that a rule may have something to say about."""
    speed = clock.speed()
    if speed is not None:
        updates = TimedUpdates(
            speed.updates, speed.seconds, speed.lasted, clock.least, speed.device
        )
        _tell_fetches(clock, speed, updates)
        _tell_optimizers(clock, speed, updates)
        _tell_norms(clock, speed, updates)
        if speed.device == "cuda":
            _tell_reads(clock, speed, updates)
            _tell_moves(clock, speed, updates)
            _tell_products(clock, speed, updates)
    _tell_starts(clock)


def _tell_fetches(clock: StepTimer, speed: Speed, updates: TimedUpdates) -> None:
    """Of the loader that is waited for longest."""
    found = _by_place(clock.tally.fetches)
    if not found:
        return
    loader = max(found, key=lambda each: found[each].seconds)
    fetches = found[loader]
    whole = sum(each.seconds for each in found.values())
    batches = fetches.count / speed.updates
    rest = speed.seconds - speed.parts["data"]
    measured = DataWait(
        place=loader.made, updates=updates, loader=loader,
        share=speed.share("data") * (fetches.seconds / whole if whole else 0.0),
        batch=fetches.seconds / fetches.count,
        busy=_part(fetches.busy, fetches.seconds),
        workers_busy=_part(fetches.workers_busy, fetches.workers_time),
        rest=rest / batches,
        cores=cores(),
    )  # fmt: skip
    clock.watcher.measure(measured)


def _by_place(found: dict[Any, Fetches]) -> dict[Any, Fetches]:
    """Loaders made again for every epoch count as one."""
    first: dict[Any, Any] = {}
    merged: dict[Any, Fetches] = {}
    for loader, fetches in found.items():
        one = first.setdefault(loader.made if loader.made.line else loader, loader)
        before = merged.get(one, Fetches())
        both = (
            getattr(before, f.name) + getattr(fetches, f.name) for f in dataclasses.fields(Fetches)
        )
        merged[one] = Fetches(*both)
    return merged


def _part(some: float, whole: float) -> float:
    """From 0 to 1; 1 where it is not known."""
    found = some / whole if whole else 1.0
    return min(1.0, found) if found == found else 1.0


def cores() -> int:
    """Of this machine, that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tell_optimizers(clock: StepTimer, speed: Speed, updates: TimedUpdates) -> None:
    found = clock.tally.optimizers
    whole = sum(found.values())
    for optimizer, seconds in found.items():
        if optimizer.fusible and whole:
            part = seconds / whole
            share = speed.share("optimizer") * part
            if clock.device == "cpu":
                share = min(share, clock.tally.share_of(optimizer))
            measured = OptimizerTime(
                place=optimizer.made, updates=updates, optimizer=optimizer,
                share=share,
                step=speed.parts["optimizer"] * part,
                ratio=optimizer.fused_ratio,
            )  # fmt: skip
            clock.watcher.measure(measured)


def _tell_norms(clock: StepTimer, speed: Speed, updates: TimedUpdates) -> None:
    for (kind, site), calls in clock.tally.calls.items():
        place = user_frames.place_at(*site)
        if kind == "norm" and _adds_up(place):
            measured = GradientNorms(
                place=place, updates=updates,
                often=calls.units / speed.updates,
                count=calls.count // calls.units,
                each=calls.seconds / speed.updates,
                share=calls.seconds / speed.updates / speed.seconds,
            )  # fmt: skip
            clock.watcher.measure(measured)


def _adds_up(place: Location) -> bool:
    """The numbers are added up in the loop that contains this line: they make one norm."""
    source = source_map.source_of(place.path)
    loops = source.loops_around(place.line)
    over = loops[-1].iter if loops and isinstance(loops[-1], ast.For) else None
    if over is not None and _PARAMETERS.search(ast.unparse(over)):
        return any(isinstance(each, ast.AugAssign) for each in ast.walk(loops[-1]))
    statement = source.statement_at(place.line)
    return statement is not None and any(
        isinstance(each, ast.Call) and source_map.dotted(each.func).rpartition(".")[2] == "sum"
        for each in ast.walk(statement)
    )


def _tell_reads(clock: StepTimer, speed: Speed, updates: TimedUpdates) -> None:
    idle = speed.parts["data"] + speed.parts["rest"]
    for (kind, site), calls in clock.tally.calls.items():
        if kind == "norm" or kind.startswith("move by "):
            continue
        blocked = calls.seconds / speed.updates
        measured = DeviceRead(
            place=user_frames.place_at(*site), updates=updates,
            how=kind,
            often=calls.units / speed.updates,
            blocked=blocked,
            # What the device could do meanwhile is what it does not do while it is not waited for.
            share=min(blocked, idle) / speed.seconds,
        )  # fmt: skip
        clock.watcher.measure(measured)


def _tell_moves(clock: StepTimer, speed: Speed, updates: TimedUpdates) -> None:
    for (kind, site), calls in clock.tally.calls.items():
        if kind.startswith("move by "):
            each = calls.seconds / speed.updates
            measured = DeviceTransfer(
                place=user_frames.place_at(*site), updates=updates,
                non_blocking=calls.non_blocking,
                pinned=calls.pinned,
                how=kind.removeprefix("move by "),
                often=calls.units / speed.updates,
                each=each,
                share=min(each, speed.parts["transfer"]) / speed.seconds,
            )  # fmt: skip
            clock.watcher.measure(measured)


def _tell_products(clock: StepTimer, speed: Speed, updates: TimedUpdates) -> None:
    """Of models whose parameters are mostly those of matrix products in float32."""
    precision = _precision()
    capable = torch.cuda.get_device_capability() >= (8, 0)
    for reference in clock.models:
        module = reference()
        if module is None or precision != "highest" or not capable:
            continue
        found = {
            id(p): p for part in module.modules() if isinstance(part, _PRODUCTS)
            for p in part.parameters() if p.dim() == 2 and p.dtype == torch.float32 and p.is_cuda
        }  # fmt: skip
        whole = sum(each.numel() for each in nn.Module.parameters(module))
        measured = MatrixProducts(
            updates=updates, model=clock.watcher.things.model(module),
            part=sum(each.numel() for each in found.values()) / max(1, whole),
            widest=max((min(each.shape) for each in found.values()), default=0),
            share=speed.share("forward") + speed.share("backward"),
        )  # fmt: skip
        clock.watcher.measure(measured)


def _precision() -> str:
    """Of float32 matrix products; empty where the program has decided for parts of it."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # the old and the new way to set it were both used
        return ""


def _tell_starts(clock: StepTimer) -> None:
    for loader, passes in clock.starts.found.items():
        if passes.count:
            measured = WorkerStarts(
                place=loader.made, loader=loader,
                passes=passes.count,
                lasted=passes.seconds,
                least=clock.least,
                each=passes.lost / passes.count,
                share=passes.lost / passes.seconds,
                changes=passes.changes,
            )  # fmt: skip
            clock.watcher.measure(measured)
