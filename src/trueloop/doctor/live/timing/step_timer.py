"""The clock: stamps at the seams, in a few turns of a program.

A unit begins after one step of an optimizer and ends with its next. Its time is divided among
parts: each stamp charges what has passed since the one before to the part that was innermost. The
watcher's own work is a part as well, and subtracted. Units in which the watcher looks are measured
only until there are others, and only if they are so long that its work does not show in them.

On a GPU the stamps are events in the program's stream, and the parts are what its clock says has
passed between them: what the processor does while the GPU is busy costs nothing. They are read once
they have come to pass, without waiting for them.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.hub import dispatch_modes, no_torch_dispatch, no_torch_function
from trueloop.doctor.live.timing import cpu_demand, sample_collation
from trueloop.doctor.live.timing.fused_optimizers import could_be_fused, ratio_of_fused
from trueloop.doctor.live.timing.step_timing import (
    ENOUGH,
    OWN,
    PARTS,
    Fetches,
    Speed,
    StepInterval,
    TimeTotals,
)
from trueloop.doctor.live.timing.tensor_reads import TensorReads
from trueloop.doctor.live.timing.worker_startup import WorkerStartup
from trueloop.doctor.model.things import Loader, Optimizer

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from torch import nn
    from torch.utils.data import DataLoader
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    from trueloop.doctor.live.context import Context
    from trueloop.doctor.live.hub import Hub, P, R

LEAST = 5.0
"""Seconds that a training must last before its speed is reported unasked."""
WARM_UP = 5
"""Updates that are not counted: the first ones allocate, compile and tune."""
FIRST_BURST, BURST = 40, 20
"""Units that are measured at first, and then each time."""
_TRIES = 300
"""Steps after which a burst ends, however few of its units were of use."""
_LOOKED = 5e-3
"""Seconds that units must take for the watcher, which looks at them, not to show in them."""
_SHOWS = 5
"""Units that are looked at, after which it is known how long they are."""
_AWAY = 8
"""Updates after which it is asked again whether the watcher still looks."""
_SHORT = 2e-3
"""Seconds of an update, below which a look at one takes as long as several."""
_SHARE = 0.05
"""Of an optimizer, from which on a faster one is tried out."""
_NEVER = 1 << 62
_OUTSIDE = {
    "data": ("rest",),
    "transfer": ("rest",),
    "forward": ("rest", "optimizer"),
    "loss": ("rest", "forward", "optimizer"),
    "backward": ("rest", "optimizer"),
    "optimizer": ("rest",),
    "scheduler": ("rest",),
    OWN: PARTS,
}
"""Part -> the parts in which it may begin: inside of others, it is a piece of them."""


class StepTimer:
    """Of one watched process: of the thread in it that trains."""

    own = OWN

    def __init__(self, hub: Hub, watcher: Context) -> None:
        self.hub, self.watcher = hub, watcher
        self.on = False
        """Read by the seams: they take stamps only then."""
        self.next = WARM_UP
        """Update at which it is switched on again."""
        self.least = LEAST
        hub.worker_starts = self.starts = WorkerStartup(hub)
        self.evaluation = 0.0
        self.device = "cpu"
        self.backwards = 0
        self.unit: StepInterval | None = None
        self.models: list[Any] = []
        """Weak references to what was called from outside of any module."""
        self._clean, self._looked = TimeTotals(), TimeTotals()
        self._open = ["rest"]
        self._last = 0.0
        self.thread = 0
        """The one that trains."""
        self._reference: Any = None
        self._wanted = self._tries = 0
        self._before_step = 0.0
        self.reads = TensorReads(self)
        self._seen_workers = (0, 0.0, 0.0)
        """Iterator (`id`), what its workers had asked for then, and when."""
        self._unread: deque[StepInterval] = deque(maxlen=64)
        """On a GPU: units whose events may not have come to pass."""
        self.evaluated: tuple[Any, float] | None = None
        """The modules that were switched to `eval()`, and when. Once training continues it is
        forgotten: an evaluation whose end was not seen is not counted."""
        hub.timer = self

    # ------------------------------------------------------------------ when it is on

    def due(self) -> None:
        """The update has come at which it is switched on."""
        if self.hub.multithreaded:
            self.close()
            return
        is_known = self._looked.units >= _SHOWS
        if self.hub.sampling and is_known and not self._is_long(self._looked):
            self.next = self.hub.updates + _AWAY
            return
        self.next = _NEVER
        self._wanted = BURST if self._clean.units else FIRST_BURST
        self._tries = _TRIES
        self.thread = get_ident()
        self._reference = None
        self._lose()
        self.reads.begin()
        self.on = True
        self.hub.refresh_call_patch()

    def updated(self) -> None:
        """An update has ended."""
        if self.hub.updates >= self.next:
            self.hub.guarded(self.due)
        self.evaluated = None

    def _end_burst(self) -> None:
        self.on = False
        self._lose()
        self.reads.end()
        self.next = int(self.hub.updates * (4 if self.is_short else 1.5)) + 1
        self.hub.refresh_call_patch()

    def close(self) -> None:
        """For good: the run is over, or what it does cannot be timed."""
        self.on = False
        self.next = _NEVER
        self._lose()
        self.reads.end()

    def _lose(self) -> None:
        """The current work is not measured."""
        self.unit = None
        self._open = ["rest"]

    # ------------------------------------------------------------------ stamps

    def enter(self, part: str) -> bool:
        """A part begins; False where it does not count as one: then it must not be left."""
        try:
            if get_ident() != self.thread or self._open[-1] not in _OUTSIDE[part]:
                return False
            self._stamp(self._open[-1])
            self._open.append(part)
        except Exception as error:
            self._broke(error)
            return False
        return True

    def leave(self, part: str) -> None:
        """It has ended."""
        if get_ident() != self.thread:
            return
        try:
            if self._open[-1] != part:
                self._lose()
                return
            self._stamp(part)
            if self._open[-1] == part:
                self._open.pop()
        except Exception as error:
            self._broke(error)

    def _broke(self, error: Exception) -> None:
        """A fault of the clock's own: nothing is timed from here on."""
        self.on = False
        self.next = _NEVER
        self.hub.failed(error)

    @user_frames.passed_over
    def run(self, part: str, original: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call something, as a part that was entered."""
        try:
            if part == "backward":
                self.backwards += 1
            elif part == "forward":
                self._called(args[0])
        except Exception as error:
            self._broke(error)
        try:
            return original(*args, **kwargs)
        finally:
            self.leave(part)

    @user_frames.passed_over
    def fetch(
        self, original: Callable[[_BaseDataLoaderIter], R], iterator: _BaseDataLoaderIter
    ) -> R:
        """Ask a loader for a batch, as a part that was entered."""
        unit, before, busy = self.unit, 0.0, 0.0
        try:
            before = 0.0 if unit is None else unit.seconds["data"]
            busy = self._demand(None)
        except Exception as error:
            self._broke(error)
        try:
            return original(iterator)
        finally:
            try:
                self._fetched(iterator, unit, before, busy)
            except Exception as error:
                self._broke(error)

    def _fetched(
        self, iterator: _BaseDataLoaderIter, unit: StepInterval | None, before: float, busy: float
    ) -> None:
        """An iterator has given a batch, in a unit that had spent `before` on data."""
        busy = self._demand(None) - busy
        waited = 0.0 if unit is None else self.so_far("data") - before
        self.leave("data")
        loader = self.watcher.things.objects.get(iterator)
        if unit is not None and unit is self.unit and isinstance(loader, Loader):
            fetches = unit.fetches.setdefault(loader, Fetches())
            fetches.count += 1
            fetches.seconds += waited
            fetches.busy += busy
            self._workers(iterator, fetches)

    def _demand(self, workers: Sequence[BaseProcess] | None) -> float:
        """Seconds of processor time that were asked for until now, by the workers of an iterator or
        by this thread if it is None."""
        entered = self.enter(OWN)
        found = cpu_demand.of_thread() if workers is None else cpu_demand.of_workers(workers)
        if entered:
            self.leave(OWN)
        return found

    def _workers(self, iterator: _BaseDataLoaderIter, fetches: Fetches) -> None:
        """How busy its workers were since its last batch."""
        workers = getattr(iterator, "_workers", None)
        if workers:
            found, now = self._demand(workers), perf_counter()
            known = self._seen_workers
            self._seen_workers = (id(iterator), found, now)
            if known[0] == id(iterator) and found >= known[1]:
                fetches.workers_busy += found - known[1]
                fetches.workers_time += (now - known[2]) * len(workers)

    def so_far(self, part: str = "") -> float:
        """Seconds of the unit until now, in one part or without the watcher's own."""
        self._stamp(self._open[-1])
        if self.unit is None:
            return 0.0
        return self.unit.seconds[part] if part else self.unit.net

    def _stamp(self, part: str) -> None:
        now = perf_counter()
        unit = self.unit
        if unit is not None:
            unit.seconds[part] += now - self._last
            if self.hub.sampling:
                unit.looked = True
            elif self.device == "cuda":
                self._mark(unit, part)
        self._last = now

    def _mark(self, unit: StepInterval, part: str) -> None:
        try:
            if torch.cuda.is_current_stream_capturing():
                self._lose()  # what is recorded into a graph is not run now
                return
            event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            event.record()
        except Exception as error:  # whatever it is, the program continues
            self.hub.failed(error)
            self.close()
        else:
            unit.marks.append((part, event))

    def _called(self, module: object) -> None:
        if len(self.models) < 8 and not any(each() is module for each in self.models):
            self.models.append(weakref.ref(module))

    # ------------------------------------------------------------------ what happens between

    def begins(
        self,
        loader: DataLoader[Any],
        thing: Loader,
        iterator: _BaseDataLoaderIter,
        begin: float,
        end: float,
    ) -> None:
        """A loop over a loader begins, whose iterator was made from `begin` to `end`."""
        if self.unit is not None:
            self.unit.crossed = True
        sample_collation.note(loader, thing)
        self.starts.begins(loader, thing, iterator, begin, end)

    def switched(self, module: nn.Module, training: bool) -> None:
        """A module was switched to the other mode."""
        self.hub.unsampled.leave()
        if self.unit is not None:
            self.unit.crossed = True
        if not self.hub.updates:
            return
        if not training:
            if self.evaluated is None:
                self.evaluated = (weakref.ref(module), perf_counter())
        elif self.evaluated is not None and self.evaluated[0]() is module:
            self.evaluation += perf_counter() - self.evaluated[1]
            self.evaluated = None

    # ------------------------------------------------------------------ units

    def steps(self) -> None:
        """An optimizer is about to step."""
        try:
            if self.enter("optimizer"):
                self._before_step = 0.0 if self.unit is None else self.unit.seconds["optimizer"]
        except Exception as error:
            self._broke(error)

    def has_stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """It has."""
        try:
            self._has_stepped(optimizer)
        except Exception as error:
            self._broke(error)

    def _has_stepped(self, optimizer: torch.optim.Optimizer) -> None:
        if get_ident() != self.thread or self._open[-1] != "optimizer":
            return
        self.leave("optimizer")
        thing = self.watcher.things.objects.get(optimizer)
        if self.unit is not None and isinstance(thing, Optimizer):
            seconds = self.unit.seconds["optimizer"] - self._before_step
            known = self.unit.optimizers.get(thing, 0.0)
            self.unit.optimizers[thing] = known + seconds

    def turn(self, optimizer: torch.optim.Optimizer) -> None:
        """A unit ends, and the next one begins, if this is the optimizer that units go by."""
        try:
            with no_torch_function():
                if not dispatch_modes():
                    self._turn(optimizer)
                    return
                with no_torch_dispatch():
                    self._turn(optimizer)
        except Exception as error:
            self._broke(error)

    def _turn(self, optimizer: torch.optim.Optimizer) -> None:
        if get_ident() != self.thread:
            return
        self._tries -= 1
        if len(self._open) > 1:
            self._lose()
        reference = None if self._reference is None else self._reference()
        if reference is None:
            self._begin_with(optimizer)
        elif reference is optimizer:
            self._finish()
        if self.on and (self._wanted <= 0 or self._tries <= 0 or self.hub.multithreaded):
            self._end_burst()
        elif self.on and self._reference is not None and self._reference() is optimizer:
            self.unit = StepInterval(self.hub.updates)
            self.reads.fresh()
            self._stamp("rest")
            self.unit.seconds["rest"] = 0.0

    def _begin_with(self, optimizer: torch.optim.Optimizer) -> None:
        groups = optimizer.param_groups
        first = next((p for group in groups for p in group["params"]), None)
        device = "cpu" if first is None else first.device.type
        if device not in ("cpu", "cuda"):
            self.close()  # its work continues after the calls that ask for it
            return
        self.device = device
        self.reads.on_device(device)
        self._reference = weakref.ref(optimizer)

    def _finish(self) -> None:
        unit = self.unit
        if unit is None:
            return
        self._stamp("rest")
        self.unit = None
        unit.updates = self.hub.updates - unit.updates
        unit.calls = self.reads.calls()
        if unit.crossed:
            return
        if unit.looked:
            if self.device == "cpu":
                self._looked.add(unit)
                if self._looked.units == FIRST_BURST:
                    self._try_fused()
                elif self._looked.units == _SHOWS and not self._is_long(self._looked):
                    self._end_burst()  # nothing would be learnt from them
                    self.next = self.hub.updates + _AWAY
            return
        self._wanted -= 1
        if self.device == "cuda":
            self._unread.append(unit)
            self._read()
        else:
            self._clean.add(unit)
        if self._wanted <= 0:
            self._try_fused()

    def _is_long(self, looked: TimeTotals) -> bool:
        """These units are so long that the watcher's looks do not show in them."""
        return looked.seconds >= _LOOKED * looked.units

    def _read(self) -> None:
        """Take the times of units whose events have come to pass."""
        while self._unread:
            unit = self._unread[0]
            if len(unit.marks) < 2:
                self._unread.popleft()
                continue
            if not unit.marks[-1][1].query():
                return
            self._unread.popleft()
            unit.seconds = dict.fromkeys(unit.seconds, 0.0)
            before = unit.marks[0][1]
            for part, event in unit.marks[1:]:
                unit.seconds[part] += before.elapsed_time(event) / 1e3
                before = event
            self._clean.add(unit)

    def _try_fused(self) -> None:
        """Whether optimizers that take a share of the update would be faster fused."""
        tally = self.tally
        for reference in self.watcher.things.optimizers:
            optimizer = reference()
            thing = self.watcher.things.objects.get(optimizer)
            if optimizer is None or thing is None or thing.fusible is not None:
                continue
            if tally.share_of(thing) >= _SHARE:
                try:
                    thing.fusible = could_be_fused(optimizer)
                    if thing.fusible:
                        thing.fused_ratio = ratio_of_fused(optimizer)
                except Exception as error:  # whatever it is, the program continues
                    thing.fusible = False
                    self.hub.failed(error)

    # ------------------------------------------------------------------ what came of it

    @property
    def is_short(self) -> bool:
        """An update takes less than a look at one."""
        clean = self._clean
        return clean.updates > 0 and clean.seconds < _SHORT * clean.updates

    @property
    def tally(self) -> TimeTotals:
        """Of units that nobody looked at, unless there are too few, and others do."""
        clean, looked = self._clean, self._looked
        is_fit = looked.units > clean.units and self._is_long(looked)
        return looked if clean.units < ENOUGH and is_fit else clean

    def speed(self) -> Speed | None:
        """Where the time went; None if nothing was measured."""
        self._read()
        tally = self.tally
        if not tally.units:
            return None
        lasted = self.hub.updates * tally.seconds / max(1, tally.updates)
        parts = {part: tally.parts[part] / tally.units for part in PARTS}
        return Speed(tally.units, parts, lasted, self.evaluation, self.device)
