"""The clock of a run: how far it is, how long it is to be, and what is due by that."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from trueloop import _options, ranks
from trueloop.errors import ConfigError
from trueloop.feed import Feed
from trueloop.lengths import LENGTHS, Interval
from trueloop.records import StepRecord
from trueloop.step import Step

EVALUATION, LINE, SAVE = "an evaluation", "a line of the log", "a save"
"""The things that may be due."""
_NOTHING: frozenset[str] = frozenset()


class Stopwatch:
    """Seconds that the run has trained, those of its earlier parts included.

    A function, and not a method of the object that has the clock: a cycle of references would leave
    the end of a loader's workers to the garbage collector, which takes five seconds for each of
    them.
    """

    def __init__(self) -> None:
        self.earlier = 0.0
        self.begin()

    def begin(self) -> None:
        """Count from now on, after the earlier seconds."""
        self._started = time.perf_counter()

    def __call__(self) -> float:
        return self.earlier + time.perf_counter() - self._started


class Alarm:
    """Goes off at the first count that reaches the next multiple of an interval."""

    def __init__(self, what: str, interval: Interval) -> None:
        self.what = what
        self.unit = interval.unit
        self._every = 60 * interval.amount if self.unit == "minutes" else interval.amount
        self._next: float = math.inf

    def set_after(self, count: float) -> None:
        """Go off at the first multiple beyond `count`."""
        self._next = (count // self._every + 1) * self._every

    def rings(self, count: float) -> bool:
        return count >= self._next


class RunClock:
    """Counts updates, samples, tokens and minutes of a run, and says what is due after an update.

    What is asked for every so many epochs is due at their ends; every so many updates, after each
    update whose number is a multiple; samples and tokens, after the first update with which their
    total reaches a multiple; minutes, after the first update at which the run has trained for a
    multiple, by the clock of rank 0. An update that was skipped (`skipped`) counts for nothing.

    `intervals` names them by what is due (None: never by this clock); `seconds` returns how long
    the run has trained. On several ranks each has one, with the same intervals, and gets the same
    answers at the same updates.
    """

    def __init__(
        self,
        intervals: Mapping[str, Interval | None],
        seconds: Callable[[], float],
        length: Interval,
    ) -> None:
        self.length = length
        self.samples = 0
        """Samples in the updates so far, of all ranks."""
        self.tokens = 0
        self.evaluation_due = False
        """An evaluation belongs to the last update, and has not been made yet."""
        self.at_last_batch = False
        """All batches of the epoch are taken, and it has not been ended yet."""
        self.intervals = intervals
        self._seconds = seconds
        self._read = 0.0
        """When the clock was read last, in seconds of training."""
        given = [Alarm(what, i) for what, i in intervals.items() if i is not None]
        self._alarms = [alarm for alarm in given if alarm.unit not in ("epochs", "minutes")]
        self._minutes = [alarm for alarm in given if alarm.unit == "minutes"]
        units = {alarm.unit for alarm in given} | {length.unit}
        self._needs_tokens = "tokens" in units
        line = intervals.get(LINE)
        self._line_epochs = int(line.amount) if line is not None and line.unit == "epochs" else 0
        self._agreement = ranks.Agreement()

    def start(self, step: Step) -> None:
        """Count from where the step is; after `load_state_dict` where there is a state."""
        counts = self._counts(step.updates)
        for alarm in self._alarms:
            alarm.set_after(counts[alarm.unit])
        for alarm in self._minutes:
            alarm.set_after(self._read)

    def _counts(self, updates: int) -> dict[str, int]:
        return {"updates": updates, "samples": self.samples, "tokens": self.tokens}

    def tick(self, record: StepRecord, last: bool) -> Collection[str]:
        """Count a window that has ended, with the epoch's `last` batch or not; what is due now."""
        self.at_last_batch = last
        due: Collection[str] = _NOTHING
        if record.updated:
            self.samples += record.samples
            self.tokens += record.tokens
            if self._needs_tokens and not record.tokens:
                raise ConfigError(
                    "the run is counted in tokens, and a batch has none: its first tensor is not "
                    "one of token ids (batch, length), int64 or int32; count it in updates or "
                    "samples"
                )
            if self._alarms or self._minutes:
                due = self._due(record)
        if last and self._line_epochs and (record.epoch + 1) % self._line_epochs == 0:
            due = {*due, LINE}
        return due

    def _due(self, record: StepRecord) -> set[str]:
        counts = self._counts(record.update)
        due = {alarm.what for alarm in self._alarms if alarm.rings(counts[alarm.unit])}
        if due:
            for alarm in self._alarms:
                alarm.set_after(counts[alarm.unit])
        return due | self._due_by_minutes() if self._minutes else due

    def _due_by_minutes(self) -> set[str]:
        """The decision of rank 0's clock; the others learn of it an update or a few later, and rank
        0 with them."""
        self._read = now = self._seconds()
        due = {alarm.what for alarm in self._minutes if alarm.rings(now)}
        if ranks.is_distributed():
            if not self._agreement.ask(bool(due) and ranks.is_main()):
                return set()
            due, now = ranks.from_main((due, now), "what rank 0's clock says")
        if due:
            for alarm in self._minutes:
                alarm.set_after(now)
        return due

    def is_epochs(self, what: str, ended: int) -> bool:
        """Whether `what` is due by epochs when `ended` of them have ended."""
        interval = self.intervals.get(what)
        return (
            interval is not None and interval.unit == "epochs" and ended % int(interval.amount) == 0
        )

    def is_over(self, step: Step) -> bool:
        """Whether the run is as long as asked. An epoch whose last batch is taken ends before."""
        return not self.at_last_batch and self.reaches(step.epoch, step.updates)

    def reaches(self, epochs: int, updates: int) -> bool:
        """Whether a run that has come so far, and to `tokens`, is as long as asked."""
        done = {"epochs": epochs, "updates": updates, "tokens": self.tokens}
        return done[self.length.unit] >= self.length.amount

    def state_dict(self) -> dict[str, Any]:
        return {
            "samples": self.samples,
            "tokens": self.tokens,
            "seconds": self._read,
            "evaluation_due": self.evaluation_due,
            "at_last_batch": self.at_last_batch,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.samples, self.tokens = state["samples"], state["tokens"]
        self._read = state["seconds"]
        self.evaluation_due = state["evaluation_due"]
        self.at_last_batch = state["at_last_batch"]


def run_length(epochs: Any, updates: Any, tokens: Any) -> Interval:
    """The length of the run; `ConfigError` unless exactly one of the three is given."""
    given = {
        name: value
        for name, value in zip(LENGTHS, (epochs, updates, tokens), strict=True)
        if value is not None
    }
    if not given:
        raise ConfigError(
            "how long the run is to be is not said: write epochs=10, updates=10_000 or "
            "tokens=1_000_000"
        )
    if len(given) > 1:
        listed = " and ".join(f"{name}={_options.shown(value)}" for name, value in given.items())
        raise ConfigError(f"{listed} each set the length of the run: write one of them")
    ((unit, amount),) = given.items()
    example = {"epochs": 10, "updates": 10_000, "tokens": 1_000_000}[unit]
    return Interval(_options.whole(unit, amount, 1, example), unit)


def plan(step: Step, train: Feed, length: Interval) -> None:
    """Tell the step, and so its schedule, how long the run is; `ScheduleError` where the schedule
    does not end with it."""
    batches = len(train) if train.has_length else None
    amount = int(length.amount)
    if length.unit == "epochs":
        step.plan(epochs=amount, batches=batches)
    elif length.unit == "updates":
        step.plan(updates=amount, batches=batches)
    else:
        step.plan(updates=updates_of_tokens(train, step.accumulate, amount), batches=batches)


def updates_of_tokens(train: Feed, accumulate: int, tokens: int) -> int | None:
    """The number of the first update at which a run has trained on so many tokens; None where the
    data does not say how many each update has."""
    each, size, samples = train.tokens_per_sample(), train.batch_size, train.samples
    if each is None or size is None or samples is None:
        return None
    if train.drop_last:
        samples -= samples % size
    per_update = accumulate * size
    epochs, rest = divmod(tokens, samples * each)
    return epochs * -(-samples // per_update) + -(-rest // (per_update * each))
