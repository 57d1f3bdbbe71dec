"""A program that has run out of memory: what took it, and what would fit.

Everything is counted after the fact. What is alive is measured when the exception passes by; how
much a forward keeps for its backward is counted by making its calls again on tensors without data,
when the program is over.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from trueloop.device import OUT_OF_MEMORY, is_out_of_memory
from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.memory import footprint
from trueloop.doctor.live.memory.fake_forward import CallSpec, SavedBytes, note_call, saved_by
from trueloop.doctor.live.memory.options import USABLE, MemoryOption, Needs, fits
from trueloop.doctor.live.memory.recorded_shapes import RecordedShapes
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.probes import parameter_stats
from trueloop.doctor.model.findings import Location

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context
    from trueloop.doctor.live.memory.recorded_shapes import RecordedShapes
    from trueloop.doctor.live.nonfinite.recent_calls import RecentCalls

_ASKED = re.compile(
    r"(?:tried to allocate|Tried to allocate|Unable to allocate) ([\d.]+) (bytes|[KMGT]i?B)"
)
_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
ADDRESSES = "RLIMIT_AS"
_BACKWARDS = ("backward", "_engine_run_backward", "grad")
_MODULES = 6
_FIRST = 64 * footprint.MIB
"""Bytes of addresses that libraries ask for in a first backward and step."""


@dataclass
class Exhausted:
    """Bytes, of one update with the batch that was too large, unless said otherwise."""

    device: str
    limit: int
    """There is so much."""
    limited_by: str
    asked: int | None
    """The memory that was refused."""
    update: int
    moment: str
    """`forward`, `backward`, `step`, or empty: none of them."""
    module: str
    """In whose forward; empty where none is known."""
    place: Location
    samples: int | None
    weights: int
    gradients: int
    state: int
    state_made: bool
    buffers: int
    batch: int
    optimizers: tuple[str, ...]
    activations: int | None = None
    modules: list[tuple[str, int, int]] = field(default_factory=list)
    """The largest owner: a name, its bytes, and how many modules these are."""
    rest: int = 0
    """The other memory that the process, or the device, used."""
    fits: list[MemoryOption] = field(default_factory=list)
    why_not: str = ""
    """Why activations could not be counted."""

    @property
    def fixed(self) -> int:
        """The share that does not depend on the size of a batch."""
        return self.weights + self.gradients + self.state + self.buffers


class OutOfMemory:
    """The facts about an exception, noted before it propagates; holds no tensor."""

    def __init__(
        self, watcher: Context, calls: RecentCalls, recipes: RecordedShapes, error: BaseException
    ) -> None:
        self.watcher, self._calls, self._recipes = watcher, calls, recipes
        self.error = str(error)
        self._identity = id(error)
        self.update = watcher.updates + 1
        trace = error.__traceback__
        self.moment, self.module, self.path = _where(trace)
        self.place = _place(trace)
        self.recipe: CallSpec | None = None
        self.batch = 0
        self._note_calls()
        models = self._models()
        on_cuda = any(p.device.type == "cuda" for each in models for p in inspection.weights(each))
        self.device = "cuda" if on_cuda and "Default" not in self.error else "cpu"
        self.limit, self.limited_by, self.used = _limit(self.device)
        self._count(models)

    def _note_calls(self) -> None:
        held, known = self._calls.held, self._recipes.recipe
        recipe = CallSpec([note_call(each) for each in held], whole=True) if held else None
        if recipe is None or recipe.module is None:
            recipe = known
        elif known is not None and not recipe.has_loss and self.moment == "forward":
            recipe.borrow_loss(known)
        self.recipe = recipe

    def _models(self) -> list[nn.Module]:
        """The outermost modules that are called or trained."""
        found = dict.fromkeys(
            self.watcher.things.root_of(owner)
            for optimizer in self.watcher.things.live_optimizers()
            for parameter in inspection.parameters_of(optimizer)
            for owner in parameter_stats.owners(self.watcher, parameter)[-1:]
        )
        called = self.recipe.module if self.recipe is not None else None
        if called is not None:
            found[self.watcher.things.root_of(called)] = None
        return list(found)

    def _count(self, models: list[nn.Module]) -> None:
        parameters = {id(p): p for each in models for p in inspection.weights(each)}
        self.optimizers = self.watcher.things.live_optimizers()
        for optimizer in self.optimizers:
            parameters.update({id(p): p for p in inspection.parameters_of(optimizer)})
        here = [each for each in parameters.values() if each.device.type == self.device]
        self.weights = footprint.total(here)
        gradients = [each.grad for each in here if each.grad is not None]
        self.gradients_live = footprint.total(gradients)
        self.gradients = max(
            self.gradients_live, footprint.total(p for p in here if p.requires_grad)
        )
        buffers = [b for each in models for b in each.buffers() if b.device.type == self.device]
        self.buffers = footprint.total(buffers)
        states = [_state(each, self.device) for each in self.optimizers]
        self.state_live = sum(live for live, _ in states)
        self.state = sum(whole for _, whole in states)
        self.kinds = tuple(dict.fromkeys(type(each).__name__ for each in self.optimizers))
        self.optimizers = []
        if self.recipe is not None:
            self.batch = self.recipe.batch_bytes

    def report(self) -> Exhausted:
        """The account, once the program has ended."""
        self._calls.release()
        _let_go(self._identity, lambda code: user_frames.kind_of(code.co_filename) == "inside")
        recipe = self.recipe
        report = Exhausted(
            device=self.device, limit=self.limit, limited_by=self.limited_by,
            asked=_asked(self.error), update=self.update, moment=self.moment, module=self.module,
            place=self.place, samples=None if recipe is None else recipe.samples,
            weights=self.weights, gradients=self.gradients, state=self.state,
            state_made=self.state_live >= self.state, buffers=self.buffers, batch=self.batch,
            optimizers=self.kinds,
        )  # fmt: skip
        live = self.weights + self.gradients_live + self.state_live + self.buffers + self.batch
        report.rest = max(0, self.used - live)
        if recipe is None or recipe.module is None:
            report.why_not = "no model was called before"
            return report
        saved = saved_by(self._calls, recipe)
        if isinstance(saved, str) and OUT_OF_MEMORY.search(saved):
            _let_go(self._identity, lambda code: True)
            saved = saved_by(self._calls, recipe)
        if isinstance(saved, str):
            report.why_not = saved
            return report
        report.activations = saved.total
        report.modules = saved.largest(_MODULES)
        alive = {"backward": saved.total, "forward": saved.until(self.path)}.get(self.moment, 0)
        report.rest = max(0, self.used - live - alive)
        if self.limited_by == ADDRESSES and not self.watcher.updates:
            report.rest += _FIRST
        self._fit(report, recipe, saved)
        return report

    def _fit(self, report: Exhausted, recipe: CallSpec, saved: SavedBytes) -> None:
        if report.samples is None:
            return
        smaller = saved_by(self._calls, recipe, samples=max(1, report.samples // 2))
        half = saved_by(self._calls, recipe, half=True)
        needs = Needs(
            room=max(0, report.limit - report.rest), usable=USABLE[self.device], fixed=report.fixed,
            batch=report.batch, samples=report.samples, saved=saved,
            smaller=None if isinstance(smaller, str) else smaller,
            half=None if isinstance(half, str) else half,
        )  # fmt: skip
        report.fits = fits(needs)


def death_of(
    watcher: Context, calls: RecentCalls, recipes: RecordedShapes, error: BaseException
) -> OutOfMemory | None:
    """The facts about an out-of-memory exception."""
    is_one = error is not None and is_out_of_memory(error)
    return OutOfMemory(watcher, calls, recipes, error) if is_one else None


def _asked(text: str) -> int | None:
    found = _ASKED.search(text)
    if found is None:
        return None
    unit = found[2] if found[2] in _UNITS else found[2][0] + "iB"
    return int(float(found[1]) * _UNITS[unit])


def _steps(trace: TracebackType | None) -> Iterator[Any]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _where(trace: TracebackType | None) -> tuple[str, str, tuple[int, ...]]:
    """The activity, its module by name, and the modules around it by `id`."""
    root: Any = None
    path: list[Any] = []
    moment = ""
    for step in _steps(trace):
        code, values = step.tb_frame.f_code, step.tb_frame.f_locals
        this = values.get("self")
        if isinstance(this, nn.Module) and code.co_name in ("forward", "_call_impl"):
            root = root if root is not None else this
            if not path or path[-1] is not this:
                path.append(this)
            moment = "forward"
        elif isinstance(this, torch.optim.Optimizer) and "step" in code.co_name:
            moment = "step"
        elif code.co_name in _BACKWARDS and user_frames.kind_of(code.co_filename) == "inside":
            moment = "backward"
    name = ""
    if moment == "forward" and path:
        names = {id(each): name for name, each in root.named_modules()}
        name = next((names[id(each)] for each in reversed(path) if names.get(id(each))), "")
    return moment, name, tuple(map(id, path))


def _place(trace: TracebackType | None) -> Location:
    """The innermost line of the program's own."""
    place = Location("", 0)
    for step in _steps(trace):
        code = step.tb_frame.f_code
        if user_frames.kind_of(code.co_filename) == "user":
            place = user_frames.place_at(code, step.tb_lasti, step.tb_lineno)
    return place


def _limit(device: str) -> tuple[int, str, int]:
    """(bytes that there are, what sets this limit, bytes of them that were taken)."""
    if device == "cuda":
        free, whole = torch.cuda.mem_get_info()
        reserved, allocated = torch.cuda.memory_reserved(), torch.cuda.memory_allocated()
        share = getattr(torch.cuda, "get_per_process_memory_fraction", lambda: 1.0)()
        room = min(free + reserved, int(whole * share))
        return room, torch.cuda.get_device_name(), allocated
    resident = footprint.resident() or 0
    try:
        import resource

        bound = resource.getrlimit(resource.RLIMIT_AS)[0]
        if bound != resource.RLIM_INFINITY:
            return bound, ADDRESSES, footprint.address_space() or resident
    except ImportError:
        pass
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            bound = int(file.read())
    except (OSError, ValueError):
        return whole, "main memory", resident
    return (bound, "cgroup", resident) if bound < whole else (whole, "main memory", resident)


def _state(optimizer: Optimizer, device: str) -> tuple[int, int]:
    """Bytes of an optimizer's state: what there is, and what there will be after its first step."""
    live = whole = 0
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.device.type != device:
                continue
            known = [
                each for each in (optimizer.state.get(parameter) or {}).values()
                if isinstance(each, torch.Tensor) and each.device.type == device
            ]  # fmt: skip
            size = footprint.total(known)
            live += size
            if not known and parameter.requires_grad:
                size = copies(optimizer, group) * footprint.storage_of(parameter)[1]
            whole += size
    return live, whole


def copies(optimizer: Optimizer, group: dict[str, Any]) -> int:
    """How many tensors of a parameter's size an optimizer of torch keeps for it."""
    kind = type(optimizer).__name__
    if kind in ("Adam", "AdamW", "NAdam", "RAdam"):
        return 3 if group.get("amsgrad") else 2
    if kind == "SGD":
        return 1 if group.get("momentum") else 0
    if kind == "RMSprop":
        return 1 + bool(group.get("momentum")) + bool(group.get("centered"))
    return {"Adamax": 2, "Adadelta": 2, "ASGD": 1, "Rprop": 2}.get(kind, 0)


def _let_go(identity: int, which: Callable[[CodeType], bool]) -> None:
    """The variables of functions that an exception has ended, which its traceback still references,
    after Python has shown it and the program is over."""
    last = getattr(sys, "last_value", None)
    if last is None or id(last) != identity:
        return
    for step in _steps(last.__traceback__):
        if which(step.tb_frame.f_code):
            with suppress(RuntimeError):  # it runs still
                step.tb_frame.clear()
