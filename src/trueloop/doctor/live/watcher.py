"""The watcher: events of a running program, handed to the rules.

It does not look at every update. The first ones are looked at whole, then a few turns of each loop
that is entered, after each switch of a mode, and ever more rarely in between: rules need the
pattern of a loop, not each of its repetitions. While it does not look, what it has put into torch
costs one test of a flag.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch

from trueloop.doctor.live.frames import loop_bounds, user_frames
from trueloop.doctor.live.frames.loop_tracker import Turns
from trueloop.doctor.live.nonfinite.monitor import Health
from trueloop.doctor.live.objects.manual_edits import Hands
from trueloop.doctor.live.objects.provenance import Births
from trueloop.doctor.live.objects.registry import Things, Weak
from trueloop.doctor.live.objects.state_dicts import States
from trueloop.doctor.live.patches.patching import Patch, Patches
from trueloop.doctor.live.probes.probe import Probes
from trueloop.doctor.live.sampling_budget import Budget
from trueloop.doctor.live.timing.step_timer import Clock
from trueloop.doctor.live.timing.step_timing import OWN
from trueloop.doctor.live.tracing import (
    dispatch_modes,
    is_abstract,
    no_torch_dispatch,
    no_torch_function,
)
from trueloop.doctor.live.training.monitor import Progress
from trueloop.doctor.live.unsampled_updates import Between
from trueloop.doctor.model.events import Ended, Event, LoopEntered, LoopLeft, SamplingGap
from trueloop.doctor.model.findings import Finding, Location
from trueloop.doctor.model.measurements import Measured
from trueloop.doctor.model.things import Tensor
from trueloop.doctor.rules.base import Bench, Rule
from trueloop.doctor.rules.loading import rules_for

FIRST = 50
"""Updates that are looked at from the beginning."""
AFTER = 4
"""Turns that are looked at after a loop is entered or a mode is switched."""
AGAIN = 2
"""The same, where nothing has happened but that many updates have gone by."""
_WORKS = ("ModelForward", "Backward", "OptimizerStep")


class LiveBench(Bench):
    """Rules that the program and the other rules must not suffer from: one that fails is named."""

    def __init__(self, rules: list[type[Rule]], failed: Callable[[Exception], None]) -> None:
        super().__init__(rules)
        self._failed = failed

    def findings(self) -> list[Finding]:
        try:
            return super().findings()
        except Exception as error:
            self._failed(error)
            return []

    def see(self, event: Event) -> None:
        for handler in self.handlers_of(type(event)):
            try:
                handler(event)
            except Exception as error:  # whatever it is, the program goes on
                self._failed(error)


class Track:
    """One thread of the program: where it stands, and the rules that watch it."""

    def __init__(self, rules: list[type[Rule]], failed: Callable[[Exception], None]) -> None:
        self.turns = Turns()
        self.bench = LiveBench(rules, failed)
        self.serial = 0
        self.depth = 0
        """Of calls of modules, while it is looked at."""
        self.inside: list[Any] = []
        """The modules whose calls are open, outermost first, while it is looked at."""
        self.switching = False
        """Inside of `train()`, which calls itself for each part."""
        self.quiet = False
        """Inside of torch's own code that does what it does for itself."""
        self.scaler: Any = None
        """Inside of its `step`."""
        self.scaler_stepped = False
        self.batch: tuple[Tensor, ...] = ()
        """The parts of the latest batch of a loader."""
        self.indices: Sequence[Any] = ()
        """Its samples in the data set, where they are known."""
        self.loader: Any = None
        """The loader that gives a batch now."""


class Watcher:
    """Watches one process.

    Args:
        rules: the rules to apply; all that are seen live if None.
        first: look at so many updates and then take every hook off; None: never.
    """

    def __init__(self, rules: list[type[Rule]] | None = None, first: int | None = None) -> None:
        self.rules = rules_for("L") if rules is None else rules
        self.first = first
        self.looking = True
        """Read by everything that is put into torch: it does nothing while this is False."""
        self.active = False
        self.updates = 0
        self.unseen = 0
        """Those of them that were one compiled graph each."""
        self.left = FIRST
        """Turns that are still looked at."""
        self.mark = 2 * FIRST
        """Update at which it looks again, whatever happens."""
        self.budget = Budget()
        self.things = Things()
        self.states = States(self.things)
        self.births = Births()
        self.asked = Weak()
        """Iterator of a loader -> the samples of the batches that it has asked for."""
        self.loaders = Weak()
        """Iterator of a loader -> the loader."""
        self.hands = Hands(self)
        self.progress = Progress(self)
        self.probes = Probes(self)
        self.health = Health(self)
        self.clock = Clock(self)
        self.between = Between(self)
        """Updates that nobody looks at are noted there, as long as they are as the ones before."""
        self.bundles = os.getcwd()
        """Folder that bundles are written to; empty: none is."""
        self.tracks: dict[int, Track] = {}
        self.trainer: int | None = None
        """The thread that runs backwards; the first one, if there are several."""
        self.crowded = False
        """Several do, at the same time."""
        self.reading = threading.RLock()
        """Held while gradients are read that another thread might write."""
        self.cut = False
        """The program goes on, or would have gone on, unseen: nothing is concluded from what it has
        not done."""
        self.errors: list[str] = []
        """What went wrong in the watcher itself."""
        self.judged: Callable[[Track], None] | None = None
        """Called when the rules have seen an event; what it raises ends the program."""
        self.rested: Callable[[], None] | None = None
        """Called when it looks away."""
        self.listeners: list[Callable[[Event], None]] = []
        self._turned_at = 0
        self.calling: Patch | None = None
        """Around the calls of modules."""
        self._entries: Counter[object] = Counter()
        self._patches = Patches()
        self._process = os.getpid()
        self._rank: int | None = None

    # ------------------------------------------------------------------ on and off

    def start(self) -> None:
        """Put the hooks in; the program's torch must be imported."""
        from trueloop.doctor.live.patches import install

        assert not self.active
        self.active = True
        install.install(self, self._patches)

    def stop(self) -> None:
        """Take all hooks off, and let the rules say what they have to say at the end."""
        self.between.leave()
        self.active = self.looking = False
        self.health.on = self.progress.on = False
        self.clock.close()
        self._patches.undo()

    @property
    def is_here(self) -> bool:
        """This is the process that is watched, and no child of it."""
        return os.getpid() == self._process

    def rank(self) -> int | None:
        """Its number in the process group, also when that is gone; None where there was none of
        several processes."""
        from trueloop.doctor.live.processes import rank_identity

        known = rank_identity.number()
        self._rank = self._rank if known is None else known
        return self._rank

    def findings(self) -> list[Finding]:
        """What the rules have found, after all loops have ended."""
        quietly(self, self.health.end)
        quietly(self, self.progress.end)
        quietly(self, self.clock.end)
        if not self.cut:
            self.close_loops()
            for track in self.tracks.values():
                track.bench.see(Ended(whole=True, serial=track.serial))
        return self.so_far()

    def close_loops(self) -> None:
        """Whatever loops ran have ended."""
        for track in self.tracks.values():
            for loop in reversed(track.turns.open):
                track.bench.see(LoopLeft(loop=loop.loop))
            track.turns.open.clear()

    def so_far(self) -> list[Finding]:
        """What the rules have found until now."""
        found: list[Finding] = []
        for track in list(self.tracks.values()):
            refuted = {(rule.code, place) for rule in track.bench.rules for place in rule.refuted}
            found += [
                each for each in track.bench.findings() if (each.code, each.place) not in refuted
            ]
        grave = [each.code for each in found if each.severity != "advice"]
        explained = {
            rule.code
            for rule in self.rules
            if rule.symptom_of and any(code.startswith(rule.symptom_of) for code in grave)
        }
        return [each for each in found if each.code not in explained]

    # ------------------------------------------------------------------ when to look

    def look(self, turns: int = AFTER, why: object = None) -> None:
        """Look at the next turns; of one reason ever more rarely."""
        if not self.active:
            return
        if why is not None:
            self._entries[why] += 1
            count = self._entries[why]
            if count > 8 and count & (count - 1):
                return
        self.left = max(self.left, turns)
        self.between.leave()
        self.looking = True
        self.attend()

    def attend(self) -> None:
        """What is around the calls of modules costs each of them: it is there while it is needed.
        The compiler does not mind, as it does where other functions change."""
        if self.calling is None or not self.active:
            return
        holds = self.health.on and self.health.calls.holds
        if self.looking or self.clock.on or holds:
            self.calling.put_on()
        else:
            self.calling.take_off()

    def trains(self) -> None:
        """A thread is about to run a backward; asked before every one.

        What a backward of another thread writes just now must not be read: torch writes it without
        the interpreter's lock, and the process would die of it.
        """
        here = threading.get_ident()
        if here == self.trainer:
            return
        if self.trainer not in {thread.ident for thread in threading.enumerate()}:
            self.trainer = here
            return
        with self.reading:
            self.crowded = True
            self.between.leave()

    def updated(self) -> None:
        """An optimizer has stepped; called for every update, and guarded by who calls it."""
        if not self.active:
            return
        self.updates += 1
        if self.looking:
            self.budget.looked(self.updates)
        if self.health.pending is not None:
            quietly(self, self.health.stepped)
        if self.updates >= self.clock.next:
            quietly(self, self.clock.due)
        self.clock.evaluated = None
        if self.first is not None and self.updates >= self.first:
            self._end_look()
            self.cut = True
            self.active = self.health.on = self.progress.on = False
            self.clock.close()
            self._patches.undo(in_step=True)
        elif self.updates >= self.mark:
            self.mark = self.budget.next(self.mark)
            self.look(turns=AGAIN)
        elif self.looking and self.updates > self._turned_at + AFTER:
            self._count_turn()  # of a loop that cannot be seen: its code has no file
        self.between.begin()

    def end_after_next_update(self) -> None:
        """Take all hooks off at the next update."""
        self.between.leave()
        self.first = self.updates + 1

    def passed_unseen(self, updated: bool) -> None:
        """A micro-batch was one compiled graph, and an update with it if it `updated`: from here on
        nothing is concluded from what has not been seen."""
        if not self.active:
            return
        self._end_look()
        if updated:
            self.unseen += 1
            self.updated()

    def _turned(self) -> None:
        self._turned_at = self.updates
        self._count_turn()

    def _count_turn(self) -> None:
        self.left -= 1
        if self.left < 0 and self.updates >= FIRST:
            self._end_look()

    def _end_look(self) -> None:
        """Nothing is seen from here on: what was open may go on in any way."""
        if not self.looking:
            return
        self.looking = False
        self.health.rests()
        for track in self.tracks.values():
            track.depth = 0
            track.inside.clear()
            track.bench.see(SamplingGap(serial=track.serial))
        self.probes.tell("unwatched")
        self.attend()
        if self.rested is not None:
            self.rested()

    # ------------------------------------------------------------------ events

    def track(self) -> Track:
        thread = threading.get_ident()
        track = self.tracks.get(thread)
        if track is None:
            track = self.tracks[thread] = Track(self.rules, self.failed)
        return track

    def emit(
        self,
        kind: type[Event],
        frame: Any,
        late: Callable[[Location, int], dict[str, Any]] | None = None,
        **fields: Any,
    ) -> Event | None:
        """An event, at the place where the program stands; None where no code of it runs.

        `late(place, serial)` gives fields that go by where and when it is.
        """
        here = user_frames.sites(frame)
        if not here:
            return None
        track = self.track()
        moves = track.turns.move(here, kind.__name__)
        if kind.__name__ in _WORKS:
            track.turns.works()
        self.follow(track, moves, here, frame)
        if not self.looking:
            return None
        return self.send(track, kind, here, fields, late)

    def follow(self, track: Track, moves: Any, here: list[user_frames.Site], frame: Any) -> None:
        """Hand on which loops were left and entered."""
        for loop in moves.left:
            self.send(track, LoopLeft, here, {"loop": loop, "place": loop.place})
        for loop in moves.entered:
            loop_bounds.measure(loop, frame)
            self.states.resumes(loop)
            self.send(track, LoopEntered, here, {"loop": loop, "place": loop.place})
        if moves.turned:
            self._turned()

    def send(
        self,
        track: Track,
        kind: type[Event],
        here: list[user_frames.Site],
        fields: dict[str, Any],
        late: Callable[[Location, int], dict[str, Any]] | None = None,
    ) -> Event:
        """An event for the rules."""
        place, stack = user_frames.user_place(here)
        track.serial += 1
        if late is not None:
            fields = fields | late(place, track.serial)
        event = kind(
            **{
                "place": place,
                "stack": stack,
                "turns": track.turns.now(),
                "grad": torch.is_grad_enabled(),
                "autocast": _autocast(),
                "serial": track.serial,
                **fields,
            }
        )
        self._hand_on(track, event)
        return event

    def measure(self, measured: Measured) -> None:
        """A measurement for the rules; it is no step of the program, so no loop moves."""
        track = self.track()
        track.serial += 1
        measured.serial = track.serial
        self._hand_on(track, measured)

    def _hand_on(self, track: Track, event: Event) -> None:
        for listener in self.listeners:
            listener(event)
        track.bench.see(event)
        if self.judged is not None:
            self.judged(track)

    def place(self, frame: Any) -> Location:
        """Where the program stands."""
        return user_frames.user_place(user_frames.sites(frame))[0]

    def can_read(self, *given: Any) -> bool:
        """What a call is given has values, and nobody traces it."""
        try:
            return not is_abstract(*given)
        except Exception as error:
            self.failed(error, missed=True)
            return False

    def failed(self, error: Exception, *, missed: bool = False) -> None:
        """The watcher itself has failed: the program must not notice; the report says so.

        `missed`: something that the program has done may not have been seen, so that nothing is
        concluded from what it has not done.
        """
        if os.environ.get("TRUELOOP_WATCH_DEBUG"):
            raise error
        line = type(error).__name__
        try:
            line = _described(error)
            if missed:
                self.cut = True
                for track in list(self.tracks.values()):
                    track.bench.see(SamplingGap(serial=track.serial))
        except Exception as another:  # the first one is told
            line += f", and {type(another).__name__} on top of it"
        if line not in self.errors:
            self.errors.append(line)


def _autocast() -> str | None:
    for device in ("cuda", "cpu"):
        if torch.is_autocast_enabled(device):
            return str(torch.get_autocast_dtype(device)).rpartition(".")[2]
    return None


def _described(error: Exception) -> str:
    """What went wrong, and where, in one line."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # an error of the program's, which cannot say what it is
        text = type(error).__name__
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return text
    return f"{text} ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})"


def quietly(watcher: Watcher, act: Callable[..., Any], *details: Any) -> Any:
    """Run a piece of the watcher's own: no error of it reaches the program, and no mode or class of
    the program's sees the operations that it takes."""
    timed = False
    try:
        timed = watcher.clock.on and watcher.clock.enter(OWN)
        with no_torch_function():
            if not dispatch_modes():
                return act(*details)
            with no_torch_dispatch():
                return act(*details)
    except Exception as error:  # whatever it is, the program goes on
        watcher.failed(error, missed=True)
        return None
    finally:
        if timed:
            watcher.clock.leave(OWN)
