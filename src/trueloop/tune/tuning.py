"""The plan of a tuning: what is measured, in which order, with how much of the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from trueloop.errors import ConfigError, RunError
from trueloop.tune import range_test
from trueloop.tune.changes import OTHER, ROUNDING, SAME, SpeedChange, candidates, scaled_rate
from trueloop.tune.goal import Goal, GoalRun
from trueloop.tune.results import (
    BatchSizeResult,
    ChangeResult,
    RaceEntry,
    TuningResults,
    best_of_each_option,
)
from trueloop.tune.throughput import Throughput
from trueloop.tune.trial_job import GOAL, MEASURE, RACE, RANGE, TrainingFacts, TrialJob
from trueloop.tune.trial_processes import NO_TIME, TrialProcesses, TrialResult, TrialSpec

_UNTIL = {
    "base": 0.12, "rate": 0.24, "batches": 0.42, "single": 0.66, "together": 0.74, "again": 0.82,
    "race": 0.98,
}  # fmt: skip
"""Share of the time at which each part is to be over; what one leaves goes to the next ones."""
_UNTIL_WITH_GOAL = {
    "base": 0.08, "rate": 0.16, "batches": 0.26, "single": 0.46, "together": 0.50, "again": 0.56,
    "race": 0.68, "goal": 0.98,
}  # fmt: skip
_FEWEST_UPDATES = 20
"""Updates of an epoch; a batch size that leaves fewer is not tried."""
_FLAT = 1.03
"""Twice the batch with less than this times the throughput: larger ones bring nothing more."""
_START = 0.5
"""Seconds that a trial takes to start, make its model and end."""
_LEAST_TRIAL = 1.0
"""Seconds, below which no trial is begun."""
_OTHER_RATE = 1.5
"""Times as high or as low is a different learning rate; a range test cannot resolve less."""


class TimeBudget:
    """The seconds that a tuning has."""

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        has_goal: bool = False,
    ) -> None:
        self.seconds = seconds
        self._shares = _UNTIL_WITH_GOAL if has_goal else _UNTIL
        self._clock = clock
        self._began = clock()

    def spent(self) -> float:
        return self._clock() - self._began

    def until(self, part: str) -> float:
        """Seconds left for this part of the plan."""
        return self._shares[part] * self.seconds - self.spent()

    def of(self, part: str) -> float:
        """Seconds of only this part, where those before it take all of theirs."""
        names = list(self._shares)
        k = names.index(part)
        return (self._shares[part] - (self._shares[names[k - 1]] if k else 0)) * self.seconds


class Tuning:
    """Measures, one trial after the other; `findings` is complete after each of them."""

    def __init__(
        self,
        trials: TrialProcesses,
        facts: TrainingFacts,
        budget: TimeBudget,
        *,
        memory: int | None,
        say: Callable[[str], None],
        goal: Goal | None = None,
    ) -> None:
        self.facts, self.goal = facts, goal
        self.budget = budget
        self.findings: TuningResults | None = None
        """None until the training itself was measured."""
        self._trials, self._memory, self._say = trials, memory, say
        self._own = int(facts.options["batch_size"])

    def run(self) -> TuningResults:
        """Measure all there is time for."""
        self._base()
        self._rate()
        self._batches()
        self._single()
        self._together()
        self._rate_of_batch()
        self._race()
        self._run_to_goal()
        assert self.findings is not None
        return self.findings

    # ---- the training with your options

    def _base(self) -> None:
        self._say("the training with your options")
        seconds = self.budget.until("base")
        found = self._do(
            TrialJob(kind=MEASURE, seconds=max(1.0, 0.3 * seconds)), self.budget.seconds
        )
        measured = found.value
        if not isinstance(measured, Throughput):
            if found.status == NO_TIME:
                minutes = 2 * (self.budget.spent() + 60) / 60
                raise ConfigError(
                    f"--minutes {self.budget.seconds / 60:g} is too little to measure anything: "
                    f"reading the data took {self.facts.read_seconds:.1f} s of it, and the first "
                    f"updates were not over; write --minutes {minutes:.0f}"
                )
            raise RunError(
                f"the training with your options cannot be measured ({found.status}"
                f"{': ' if found.reason else ''}{found.reason}): check that trueloop train "
                f"{self.facts.task} runs"
            )
        self.findings = TuningResults(facts=self.facts, base=measured, goal=self.goal)

    # ---- learning rate

    def _rate(self) -> None:
        self._say("learning-rate range test")
        assert self.findings is not None
        found = self._range_test({}, self._seconds_of(self._own), "rate")
        if isinstance(found, str):
            self.findings.notes.append(f"learning rate: {found}")
        else:
            self.findings.range_test = found

    def _range_test(
        self, changes: dict[str, Any], update_seconds: float, part: str
    ) -> range_test.RangeTest | str:
        """A sweep in the time of this part of the plan; or why there is none."""
        left = self.budget.until(part)
        seconds = 0.7 * left - _START
        updates = min(range_test.MOST, int(seconds / max(update_seconds, 1e-6)))
        if updates < range_test.FEWEST:
            return (
                f"no range test: there is only time for {max(updates, 0)} updates, and "
                f"{range_test.FEWEST} are needed (--minutes)"
            )
        job = TrialJob(kind=RANGE, changes=changes, seconds=seconds, updates=updates)
        found = self._do(job, left)
        if isinstance(found.value, range_test.RangeTest):
            return found.value
        return f"no range test ({found.status}{': ' if found.reason else ''}{found.reason})"

    # ---- batch size

    def _batches(self) -> None:
        """The curves: twice and half as much, from the user's own on, until it brings no more."""
        assert self.findings is not None
        findings, own = self.findings, self._own
        if not self.facts.takes_batch_size:
            findings.notes.append("batch size: the task's own DataLoader sets it")
            return
        findings.points.append(
            BatchSizeResult(batch_size=own, outcome=TrialResult(status="done", value=findings.base))
        )
        before = findings.base.rate
        sizes = self._ladder()
        if not sizes:
            findings.notes.append(
                f"batch size: twice {own:,} would leave fewer than {_FEWEST_UPDATES} updates of an "
                "epoch"
            )
        for size in sizes:
            if self.budget.until("batches") < _LEAST_TRIAL + 3 * self._seconds_of(size):
                findings.notes.append(f"batch sizes from {size:,} on: no time left (--minutes)")
                break
            self._say(f"batch size {size:,}")
            job = TrialJob(kind=MEASURE, changes={"batch_size": size}, seconds=1.0)
            outcome = self._do(job, self.budget.until("batches"))
            findings.points.append(BatchSizeResult(batch_size=size, outcome=outcome))
            if not isinstance(outcome.value, Throughput) or outcome.value.rate < _FLAT * before:
                break
            before = outcome.value.rate
        findings.points.sort(key=lambda point: point.batch_size)

    def _ladder(self) -> list[int]:
        """Batch sizes above the user's own."""
        samples, sizes = self.facts.samples, []
        size = 2 * self._own
        while samples is None or samples // size >= _FEWEST_UPDATES:
            sizes.append(size)
            size *= 2
            if len(sizes) == 20:
                break
        return sizes

    def _seconds_of(self, size: int) -> float:
        """About how long an update of so many samples takes."""
        assert self.findings is not None
        return size * int(self.facts.options["accumulate"]) / self.findings.base.rate

    # ---- each change by itself, and together

    def _single(self) -> None:
        assert self.findings is not None
        changes, left_out = candidates(self.facts, self.findings.base)
        self.findings.notes += left_out
        batch = self.findings.fastest_batch()
        if batch is not None:
            name, options = f"batch size {batch:,}", {"batch_size": batch}
            changes.insert(0, SpeedChange(name=name, options=options, results=OTHER))
        for k, change in enumerate(changes):
            left = self.budget.until("single")
            if left < _LEAST_TRIAL:
                self.findings.notes.append(f"{change.name}: no time left (--minutes)")
                continue
            self._say(f"{change.name}, in turns with the training with your options")
            share = left / (len(changes) - k)
            # One that does not end must not take the time of all that follow.
            limit = left if "compile" in change.options else min(left, 3 * share + 5 * _START)
            self.findings.rows.append(self._row(change, max(_LEAST_TRIAL, 0.5 * share), limit))

    def _row(self, change: SpeedChange, seconds: float, limit: float) -> ChangeResult:
        assert self.findings is not None
        job = TrialJob(kind=MEASURE, changes=change.options, against_base=True, seconds=seconds)
        return ChangeResult(
            change=change,
            outcome=self._do(job, limit),
            samples_of_run=self._samples_of_run(),
            base_rate=self.findings.base.rate,
        )

    def _samples_of_run(self) -> float | None:
        """Of the run that is proposed: with a goal, one that there is time for here."""
        assert self.findings is not None
        whole = self.facts.samples_of_run()
        if self.goal is None:
            return whole
        here = self.budget.of("goal") * self.findings.base.rate
        return here if whole is None else min(whole, here)

    def _together(self) -> None:
        """All that help at once; as long as that is slower than the best single one, without
        the one that gains least."""
        assert self.findings is not None
        findings = self.findings
        while len(rows := best_of_each_option(findings.kept)) > 1:
            left = self.budget.until("together")
            if left < _LEAST_TRIAL:
                findings.notes.append("all changes together: no time left (--minutes)")
                # What was not measured is not proposed: only the best one is.
                best = max(rows, key=_factor)
                findings.dropped += [r.change.name for r in rows if r is not best]
                return
            self._say("all changes that help, together")
            results = ROUNDING if any(r.change.results == ROUNDING for r in rows) else SAME
            name = " + ".join(row.change.name for row in rows)
            change = SpeedChange(name=name, options=findings.same_training(), results=results)
            together = self._row(change, max(_LEAST_TRIAL, 0.3 * left), left)
            findings.together = together
            best_single = max(map(_factor, rows))
            if together.gain is not None and together.gain.factor >= 0.97 * best_single:
                return
            findings.dropped.append(min(rows, key=_factor).change.name)
            findings.together = None

    # ---- the learning rate for that batch, and the race

    def _rate_of_batch(self) -> None:
        assert self.findings is not None
        batch = self._real_batch()
        if batch is None:
            return
        self._say(f"learning-rate range test with batch size {batch:,}")
        changes = {**self.findings.same_training(), "batch_size": batch}
        found = self._range_test(changes, self._seconds_of(batch), "again")
        if isinstance(found, str):
            self.findings.notes.append(f"learning rate with batch size {batch:,}: {found}")
        else:
            self.findings.range_test_of_batch = batch, found

    def _real_batch(self) -> int | None:
        """The fastest batch, where its gain was confirmed in turns with the user's own."""
        assert self.findings is not None
        for row in self.findings.rows:
            if "batch_size" in row.change.options and row.helps:
                return int(row.change.options["batch_size"])
        return None

    def _race(self) -> None:
        assert self.findings is not None
        entrants = self._entrants()
        if len(entrants) < 2:
            return
        for k, entrant in enumerate(entrants):
            left = self.budget.until("race")
            seconds = 0.75 * left / (len(entrants) - k)
            if k == 0:
                # Each needs a start, and a validation.
                share = seconds
            if share < 3 * _LEAST_TRIAL or seconds < 0.6 * share:
                self.findings.notes.append(f"race of {entrant.name}: no time left (--minutes)")
                continue
            self._say(f"race: {entrant.name}, {share:.0f} s of training")
            job = TrialJob(kind=RACE, changes=entrant.options, seconds=share)
            outcome = self._do(job, left)
            self.findings.entrants.append(
                RaceEntry(
                    name=entrant.name,
                    options=entrant.options,
                    results=entrant.results,
                    outcome=outcome,
                )
            )

    def _entrants(self) -> list[RaceEntry]:
        """The same training, faster; and those that train differently, which are to beat it."""
        assert self.findings is not None
        findings, same = self.findings, self.findings.same_training()
        options, own_rate = self.facts.options, float(self.facts.options["lr"])
        name = "the same training, faster" if same else "the training with your options"
        found = [RaceEntry(name=name, options=same, results=SAME)]

        def add(name: str, **changes: Any) -> None:
            found.append(RaceEntry(name=name, options={**same, **changes}, results=OTHER))

        measured = findings.range_test and findings.range_test.suggestion
        if measured and is_other_rate(measured.rate, own_rate):
            add(f"lr {range_test.number(measured.rate)} (measured)", lr=measured.rate)
        batch = self._real_batch()
        if batch is not None:
            scaled = scaled_rate(own_rate, batch / self._own, str(options["optimizer"]))
            add(
                f"batch size {batch:,}, lr {range_test.number(scaled)} (scaled)",
                batch_size=batch, lr=scaled,
            )  # fmt: skip
            again = findings.range_test_of_batch and findings.range_test_of_batch[1].suggestion
            if again and is_other_rate(again.rate, scaled):
                add(
                    f"batch size {batch:,}, lr {range_test.number(again.rate)} (measured)",
                    batch_size=batch, lr=again.rate,
                )  # fmt: skip
        return found

    # ---- the length of a run to the goal

    def _run_to_goal(self) -> None:
        """Runs of growing length, until one reaches the goal or the time is over."""
        if self.goal is None:
            return
        assert self.findings is not None
        findings, options = self.findings, self.findings.how().options
        whole = self.facts.updates_of_run(int(options.get("batch_size", 0)))
        each, updates = self._seconds_of_proposed(), 0
        while findings.reached() is None:
            left = self.budget.until("goal")
            most = int(0.8 * (left - _START) / each)
            updates = next_length(updates, most, whole)
            if not updates:
                findings.notes.append(f"a longer run to {self.goal}: no time left (--minutes)")
                return
            if updates == whole:
                findings.notes.append(f"a run shorter than the whole does not reach {self.goal}")
                return
            self._say(f"{updates:,} updates, to reach {self.goal}")
            job = TrialJob(kind=GOAL, changes=options, seconds=left - _START, updates=updates)
            outcome = self._do(job, left)
            findings.goal_runs.append((updates, outcome))
            if not isinstance(outcome.value, GoalRun):
                return
            each = outcome.value.seconds / max(1, outcome.value.updates)

    def _seconds_of_proposed(self) -> float:
        """About how long an update of what is proposed takes."""
        assert self.findings is not None
        findings, options = self.findings, self.findings.how().options
        for entrant in findings.entrants:
            if entrant.options == options and entrant.raced is not None:
                return entrant.raced.seconds / entrant.raced.updates
        return self._seconds_of(int(options.get("batch_size", self._own))) / findings.product()

    def _do(self, job: TrialJob, seconds: float) -> TrialResult:
        """One trial, which must be over in so many seconds."""
        trial = TrialSpec(job=job, seconds=max(seconds, _LEAST_TRIAL), memory=self._memory)
        return self._trials.run(trial)


def next_length(before: int, most: int, whole: int | None) -> int:
    """Updates of the next run to a goal: twice those of the one `before`, at most those that there
    is time for and those of the `whole` run; 0 where that is not worth a run.

    The first one takes less than a third of the time, so that there is some for a second one.
    """
    wanted = 2 * before if before else min(most // 3, most if whole is None else whole // 8)
    found = min(max(wanted, _FEWEST_UPDATES), most)
    if found < max(_FEWEST_UPDATES, 1.25 * before):
        return 0
    return found if whole is None else min(found, whole)


def is_other_rate(rate: float, own: float) -> bool:
    """Whether the rates differ by more than a range test can be wrong."""
    return not 1 / _OTHER_RATE <= rate / own <= _OTHER_RATE


def _factor(row: ChangeResult) -> float:
    return row.gain.factor if row.gain is not None else 0.0
