"""The schedules of a step's optimizers, one each, which tick together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.optim import Optimizer

from trueloop.errors import RunError
from trueloop.step import loading
from trueloop.step.bound_schedule import BoundSchedule
from trueloop.step.schedule import Plan, Schedule, Scores


class BoundSchedules:
    """For each optimizer its schedule, or None; built when the run's length may be known."""

    def __init__(
        self, schedules: Sequence[Schedule | None], optimizers: Sequence[Optimizer]
    ) -> None:
        self._described = tuple(schedules)
        self._optimizers = tuple(optimizers)
        self._built: list[BoundSchedule | None] = [None] * len(self._described)
        self.ticking: list[BoundSchedule] = []
        """Those that there are."""
        self.is_bound = not any(self._described)

    @property
    def monitors(self) -> tuple[str, ...]:
        """The scores that metric schedules watch, each once."""
        found = (each.monitor for each in self._described if each is not None)
        return tuple(dict.fromkeys(name for name in found if name is not None))

    @property
    def names(self) -> Any:
        """Their names, as the state's options have them: None if there are none, and of one
        optimizer no list."""
        if not self.any:
            return None
        found = [None if each is None else each.name for each in self._described]
        return found[0] if len(found) == 1 else found

    @property
    def any(self) -> bool:
        """Whether there is any."""
        return any(self._described)

    def bind(self, plan: Plan | None) -> None:
        """Build them for a run of the length of `plan`, unless that is done."""
        if self.is_bound:
            return
        built: list[BoundSchedule | None] = []
        for k, (schedule, optimizer) in enumerate(
            zip(self._described, self._optimizers, strict=True)
        ):
            # One schedule for all says once that it is over.
            speaks = schedule not in self._described[:k]
            built.append(
                None if schedule is None else BoundSchedule(schedule, optimizer, plan, speaks)
            )
        self._set(built)

    def _set(self, built: Sequence[BoundSchedule | None]) -> None:
        self._built = list(built)
        self.ticking = [each for each in built if each is not None]
        self.is_bound = bool(self.ticking) or not self.any

    def check(self, plan: Plan, *, saved: bool = False) -> None:
        """Raise `ScheduleError` unless each ends where the run ends, as `BoundSchedule.check`."""
        for each in self.ticking:
            each.check(plan, saved=saved)

    def tick_metric(self, scores: Scores | None) -> None:
        """After an evaluation, with its scores."""
        for each in self.ticking:
            each.tick_metric(scores)

    def state_dict(self) -> Any:
        """Of one optimizer its schedule's state, or None; of several a list of them, or None."""
        if not self.ticking:
            return None
        found = [None if each is None else each.state_dict() for each in self._built]
        return found[0] if len(found) == 1 else found

    def load_state_dict(self, state: Any) -> None:
        """Take up what `state_dict` returned; `RunError` for that of other schedules."""
        if state is None:
            return
        states = list(state) if isinstance(state, (list, tuple)) else [state]
        there = [each is not None for each in states]
        if there != [each is not None for each in self._described]:
            raise RunError(
                "step.schedule is there, and this step has none for the same optimizers: build it "
                "as it was"
            )
        self.bind(None)
        for each, one in zip(self._built, states, strict=True):
            if each is not None:
                each.load_state_dict(one)

    def keep(self) -> Callable[[], None]:
        """Remember where they are; returns what puts them back there."""
        built = self._built
        parts = [loading.keep_attributes(each) for each in self.ticking]
        parts += [loading.keep_scheduler(each.scheduler) for each in self.ticking]

        def put_back() -> None:
            self._set(built)
            for part in parts:
                part()

        return put_back
