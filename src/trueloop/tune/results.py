"""The measurements of a tuning so far, and what follows from them: complete after every trial."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from trueloop.tune.changes import OTHER, ROUNDING, SAME, SpeedChange
from trueloop.tune.goal import MARGIN, Goal, GoalRun
from trueloop.tune.race import RaceResult
from trueloop.tune.range_test import RangeTest
from trueloop.tune.throughput import Gain, Throughput, gain
from trueloop.tune.trial_job import TrainingFacts
from trueloop.tune.trial_processes import TrialResult

RACE_MARGIN = 0.05
"""A validation loss that is lower by less than this share does not count: a race is run once."""
_MIND = (SAME, ROUNDING, OTHER)


@dataclass(frozen=True, kw_only=True)
class ChangeResult:
    """One change, measured against the training as the user gave it."""

    change: SpeedChange
    outcome: TrialResult
    samples_of_run: float | None = None
    base_rate: float = 0.0

    @property
    def measured(self) -> Throughput | None:
        value = self.outcome.value
        return value if isinstance(value, Throughput) else None

    @property
    def gain(self) -> Gain | None:
        return None if self.measured is None else gain(self.measured.ratios)

    @property
    def pays(self) -> bool:
        """Whether what it saves in the whole run is more than what its first update costs."""
        measured, found = self.measured, self.gain
        if measured is None or found is None:
            return False
        if self.samples_of_run is None or measured.warm_seconds < 1:
            return True
        saved = self.samples_of_run / self.base_rate * (1 - 1 / found.factor)
        return saved > measured.warm_seconds

    @property
    def helps(self) -> bool:
        return self.gain is not None and self.gain.is_real and self.pays

    def why(self) -> str:
        """Its outcome, in words."""
        measured, found = self.measured, self.gain
        if measured is None or found is None:
            return (
                f"{self.outcome.status}{f': {self.outcome.reason}' if self.outcome.reason else ''}"
            )
        if not found.is_real:
            return "slower" if found.is_loss else "no gain beyond the noise"
        if not self.pays:
            return f"its first update takes {measured.warm_seconds:.0f} s, more than the run saves"
        return "faster"


@dataclass(frozen=True, kw_only=True)
class BatchSizeResult:
    """A batch size on the curves of throughput and memory."""

    batch_size: int
    outcome: TrialResult

    @property
    def measured(self) -> Throughput | None:
        value = self.outcome.value
        return value if isinstance(value, Throughput) else None


@dataclass(frozen=True, kw_only=True)
class RaceEntry:
    """A training in the race."""

    name: str
    options: dict[str, Any]
    results: str
    outcome: TrialResult | None = None

    @property
    def raced(self) -> RaceResult | None:
        value = None if self.outcome is None else self.outcome.value
        return value if isinstance(value, RaceResult) else None


@dataclass(kw_only=True)
class TuningResults:
    """All of it."""

    facts: TrainingFacts
    base: Throughput
    rows: list[ChangeResult] = field(default_factory=list)
    together: ChangeResult | None = None
    dropped: list[str] = field(default_factory=list)
    """Names of changes that help by themselves, but not beside the others."""
    range_test: RangeTest | None = None
    points: list[BatchSizeResult] = field(default_factory=list)
    range_test_of_batch: tuple[int, RangeTest] | None = None
    entrants: list[RaceEntry] = field(default_factory=list)
    goal: Goal | None = None
    goal_runs: list[tuple[int, TrialResult]] = field(default_factory=list)
    """Runs to the goal: the updates that each was given, and what became of it."""
    notes: list[str] = field(default_factory=list)
    """The parts that were not measured, and why."""

    @property
    def kept(self) -> list[ChangeResult]:
        """The changes that help and do not change the training."""
        return [
            row
            for row in self.rows
            if row.helps and row.change.results != OTHER and row.change.name not in self.dropped
        ]

    def same_training(self) -> dict[str, Any]:
        """The options that make it faster and train the same."""
        options: dict[str, Any] = {}
        for row in best_of_each_option(self.kept):
            options |= row.change.options
        return options

    def product(self) -> float:
        """Of the factors of the changes that are kept, had they nothing to do with each other."""
        found = [row.gain.factor for row in best_of_each_option(self.kept) if row.gain]
        return math.prod(found)

    def fastest_batch(self) -> int | None:
        """The smallest batch size within 3% of the most samples per second; None if that is the
        user's own, or was not measured."""
        rates = {p.batch_size: p.measured.rate for p in self.points if p.measured is not None}
        own = int(self.facts.options["batch_size"])
        if own not in rates:
            return None
        most = max(rates.values())
        best = min(size for size, rate in rates.items() if rate >= 0.97 * most)
        return best if rates[best] > 1.05 * rates[own] else None

    def reached(self) -> GoalRun | None:
        """The shortest run that reached the goal."""
        runs = [outcome.value for _, outcome in self.goal_runs]
        found = [
            run
            for run in runs
            if isinstance(run, GoalRun) and self.goal and self.goal.is_reached(run.score)
        ]
        return min(found, key=lambda run: run.updates, default=None)

    def proposal(self) -> Proposal:
        """The conclusion: the training of `how`; where a goal was given and reached, as long as
        that takes."""
        proposal, run = self.how(), self.reached()
        if run is None or self.goal is None:
            return proposal
        updates = math.ceil(MARGIN * run.updates)
        whole = self.facts.updates_of_run(int(proposal.options.get("batch_size", 0)))
        if whole is not None and updates >= whole:
            return proposal
        return Proposal(
            options={**proposal.options, "updates": updates},
            results=OTHER,
            why=f"{proposal.why}; from scratch, {run.updates:,} updates reached {self.goal} "
            f"(it was {run.score:.4g}), and {updates:,} leave a margin",
        )

    def how(self) -> Proposal:
        """The same training but faster; or, where a race has shown that it learns more in the same
        time, a different one."""
        same = self.same_training()
        results = max((row.change.results for row in self.kept), key=_MIND.index, default=SAME)
        ran = [e for e in self.entrants if e.raced is not None and math.isfinite(e.raced.loss)]
        plain = [e for e in ran if e.results != OTHER]
        others = [e for e in ran if e.results == OTHER]
        if plain and others:
            before = min(e.raced.loss for e in plain if e.raced)
            best = min(others, key=lambda e: e.raced.loss if e.raced else math.inf)
            assert best.raced is not None
            if best.raced.loss < before - RACE_MARGIN * abs(before):
                return Proposal(
                    options=best.options,
                    results=OTHER,
                    why=f"{best.name}: in the race its validation loss came to "
                    f"{best.raced.loss:.4g}, against {before:.4g}",
                )
        why = "the same training, faster" if same else "nothing was found that helps"
        if not same and any("(--minutes)" in note for note in self.notes):
            why += ", but not all was measured: write a larger --minutes"
        return Proposal(options=same, results=results, why=why)


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The options to change."""

    options: dict[str, Any]
    results: str
    why: str


def best_of_each_option(rows: list[ChangeResult]) -> list[ChangeResult]:
    """Of changes to the same options (threads 1, threads 4) the one that gains most."""
    best: dict[tuple[str, ...], ChangeResult] = {}
    for row in rows:
        key = tuple(sorted(row.change.options))
        assert row.gain is not None
        held = best.get(key)
        if held is None or held.gain is None or row.gain.factor > held.gain.factor:
            best[key] = row
    return list(best.values())
