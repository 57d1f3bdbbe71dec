"""The recorder: turns what the patches saw into events, each at its place in the program, and hands
them to the rules."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from trueloop.doctor.live.frames import loop_bounds, user_frames
from trueloop.doctor.live.frames.loop_tracker import LoopChanges
from trueloop.doctor.live.hub import Hub
from trueloop.doctor.live.objects.provenance import Registrations
from trueloop.doctor.live.objects.registry import ObjectRegistry
from trueloop.doctor.live.objects.state_dicts import StateDictFacts
from trueloop.doctor.live.tracing import is_abstract
from trueloop.doctor.live.track import Track
from trueloop.doctor.model.events import Ended, Event, LoopEntered, LoopLeft, SamplingGap
from trueloop.doctor.model.findings import Finding, Location
from trueloop.doctor.model.measurements import Measured
from trueloop.doctor.rules.base import Rule

_WORKS = ("ModelForward", "Backward", "OptimizerStep")


class Recorder:
    """The events of one watched process; it is the `Context` that probes and monitors ask."""

    def __init__(self, hub: Hub, rules: list[type[Rule]]) -> None:
        self.hub = hub
        self.rules = rules
        self.things = ObjectRegistry()
        self.states = StateDictFacts(self.things)
        self.registrations = Registrations()
        self.tracks: dict[int, Track] = {}
        self.listeners: list[Callable[[Event], None]] = []
        self.judged: Callable[[Track], None] | None = None
        """Called when the rules have seen an event; what it raises ends the program."""
        self._modes_unseen = False
        """A mode was switched since sampling ended: each further switch says no more."""
        self.reading = hub.lock
        self.failed = hub.failed

    # ------------------------------------------------------------------ what a probe asks

    @property
    def updates(self) -> int:
        return self.hub.updates

    @property
    def cut(self) -> bool:
        return self.hub.cut

    def measure(self, measured: Measured) -> None:
        """A measurement for the rules; it is not a step of the program, so no loop moves."""
        track = self.track()
        track.serial += 1
        measured.serial = track.serial
        self._hand_on(track, measured)

    # ------------------------------------------------------------------ events

    def track(self) -> Track:
        """Where this thread of the program is."""
        thread = threading.get_ident()
        track = self.tracks.get(thread)
        if track is None:
            track = self.tracks[thread] = Track(self.rules, self.hub.failed)
        return track

    def emit(
        self,
        kind: type[Event],
        frame: FrameType,
        late: Callable[[Location, int], dict[str, Any]] | None = None,
        *,
        always: bool = False,
        **fields: Any,
    ) -> Event | None:
        """An event, at the place where the program is; None where no code of it runs, and between
        samples, unless it is one that is emitted `always`.

        `late(place, serial)` gives fields that go by where and when it is.
        """
        here = user_frames.sites(frame)
        if not here:
            return None
        track = self.track()
        moves = track.turns.move(here, kind.__name__)
        if kind.__name__ in _WORKS:
            records = kind.__name__ != "ModelForward" or torch.is_grad_enabled()
            track.turns.works(kind.__name__, trains=records)
        self.follow(track, moves, here, frame)
        if not (self.hub.sampling or always):
            return None
        return self.send(track, kind, here, fields, late)

    def follow(
        self, track: Track, moves: LoopChanges, here: list[user_frames.Site], frame: FrameType
    ) -> None:
        """Hand on which loops were left and entered."""
        for loop in moves.left:
            self.send(track, LoopLeft, here, {"loop": loop, "place": loop.place})
        for loop in moves.entered:
            loop_bounds.measure(loop, frame)
            self.states.resumes(loop)
            self.send(track, LoopEntered, here, {"loop": loop, "place": loop.place})
        if moves.turned:
            self.hub.loop_turned()

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

    def _hand_on(self, track: Track, event: Event) -> None:
        for listener in self.listeners:
            listener(event)
        track.runner.handle(event)
        if self.judged is not None:
            self.judged(track)

    def place(self, frame: FrameType) -> Location:
        """Where the program is."""
        return user_frames.user_place(user_frames.sites(frame))[0]

    def can_read(self, *given: object) -> bool:
        """The arguments of a call have values, and nothing traces it."""
        try:
            return not is_abstract(*given)
        except Exception as error:
            self.hub.failed(error, missed=True)
            return False

    def unwatched(self) -> None:
        """Something may have happened that nobody has seen."""
        for track in list(self.tracks.values()):
            track.runner.handle(SamplingGap(serial=track.serial))

    def sampling_ended(self) -> None:
        for track in self.tracks.values():
            track.depth = 0
            track.inside.clear()
        self._modes_unseen = False
        self.unwatched()

    def mode_unseen(self) -> None:
        """A mode is switched between samples."""
        if self._modes_unseen:
            return
        self._modes_unseen = True
        for track in list(self.tracks.values()):
            track.runner.handle(SamplingGap(modes_switched=True, serial=track.serial))

    # ------------------------------------------------------------------ what the rules have found

    def close_loops(self) -> None:
        """Whatever loops ran have ended."""
        for track in self.tracks.values():
            for loop in reversed(track.turns.open):
                track.runner.handle(LoopLeft(loop=loop.loop))
            track.turns.open.clear()

    def end(self) -> None:
        """The run is over, and all of it was seen."""
        self.close_loops()
        self.hub.guarded(self.things.look_again)
        for track in self.tracks.values():
            track.runner.handle(
                Ended(whole_program=True, serial=track.serial, updates=self.hub.updates)
            )

    def findings(self) -> list[Finding]:
        """The findings of the rules until now."""
        found: list[Finding] = []
        for track in list(self.tracks.values()):
            refuted = {(rule.code, place) for rule in track.runner.rules for place in rule.refuted}
            found += [
                each for each in track.runner.findings() if (each.code, each.place) not in refuted
            ]
        grave = [each.code for each in found if each.severity != "advice"]
        explained = {
            rule.code
            for rule in self.rules
            if rule.symptom_of and any(code.startswith(rule.symptom_of) for code in grave)
        }
        return [each for each in found if each.code not in explained]


def _autocast() -> str | None:
    for device in ("cuda", "cpu"):
        if torch.is_autocast_enabled(device):
            return str(torch.get_autocast_dtype(device)).rpartition(".")[2]
    return None
