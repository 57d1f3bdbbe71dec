"""benchmarks/goodput_simulator.py: a simulated run, the formulas, and a run played by the clock."""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import goodput_simulator as goodputs
from goodput_simulator import Costs, Outcome, best_interval, daly, expected_seconds, simulate, young


class Clock:
    """A run played second by second; all costs and failures are whole seconds."""

    def __init__(self, costs: Costs, updates: int) -> None:
        self.costs, self.updates = costs, updates
        self.saved = self.made = 0
        self.writing: tuple[int, int] | None = None
        """The update in the checkpoint that is being written, and the seconds left."""

    def play(self, failures: list[int]) -> Outcome:
        now, count, lost, life = 0, 0, 0, self._life(self.costs.start)
        while True:
            try:
                next(life)
            except StopIteration:
                return Outcome(now, count, lost)
            if now in failures:
                lost += max(self.made - self.saved, 0)
                count, self.writing = count + 1, None
                life = self._life(self.costs.restarts[0])
                failures.remove(now)
                continue
            now += 1
            if self.writing is not None:
                self._write(self.writing[0], self.writing[1] - 1)

    def _write(self, update: int, left: int) -> None:
        self.writing = (update, left) if left else None
        if not left:
            self.saved = update

    def _life(self, wait: float) -> Iterator[None]:
        self.made = self.saved
        yield from [None] * int(wait)
        while self.made < self.updates:
            yield from [None] * int(self.costs.update)
            self.made += 1
            if self.made % self.costs.every and self.made < self.updates:
                continue
            while self.writing is not None:
                yield
            yield from [None] * int(self.costs.stall)
            self._write(self.made, int(self.costs.write))
        while self.writing is not None:
            yield
        yield from [None] * int(self.costs.end)


small = st.integers(0, 7)


@settings(max_examples=150, deadline=None)
@given(
    st.builds(
        Costs,
        update=st.integers(1, 3),
        stall=small,
        write=st.integers(0, 20),
        start=small,
        restarts=st.tuples(small),
        every=st.integers(1, 5),
        mean=st.just(math.inf),
        end=small,
    ),
    st.integers(1, 25),
    st.lists(st.integers(1, 150), max_size=6, unique=True),
)
def test_a_simulated_run_is_the_run_played_second_by_second(
    costs: Costs, updates: int, failures: list[int]
) -> None:
    failures.sort()
    wanted = Clock(costs, updates).play([*failures])
    assert simulate(costs, updates, random.Random(0), iter(failures)) == wanted


def drawn(seed: int, restarts: int = 2) -> Costs:
    chance = random.Random(seed)
    every = chance.randint(1, 20)
    return Costs(
        update=1.0,
        stall=chance.uniform(0, every / 4),
        write=chance.uniform(0, 1.5 * every),
        start=chance.uniform(0, every),
        restarts=tuple(chance.uniform(0, every) for _ in range(restarts)),
        every=every,
        mean=every / chance.uniform(0.05, 1.0),
        end=chance.uniform(0, every / 4),
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_mean_of_simulated_runs_is_the_expected_time(seed: int) -> None:
    costs, chance = drawn(seed), random.Random(seed)
    updates = chance.randint(1, 10 * costs.every)
    seconds = [simulate(costs, updates, chance).seconds for _ in range(3000)]
    error = statistics.stdev(seconds) / math.sqrt(len(seconds))
    assert abs(statistics.fmean(seconds) - expected_seconds(costs, updates)) < 4 * error + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_where_the_whole_write_is_a_stall_the_expected_time_is_dalys(seed: int) -> None:
    """Daly 2006: M·e^(R/M)·(e^((τ+δ)/M) − 1) for each segment; here also the first start."""
    drawn_costs = drawn(seed, restarts=1)
    costs = replace(drawn_costs, write=0.0, end=0.0, start=drawn_costs.restarts[0])
    mean, segments = costs.mean, 1 + seed
    begins = math.exp(costs.start / mean)
    wanted = segments * mean * begins * math.expm1(costs.segment / mean) + mean * (begins - 1)
    assert expected_seconds(costs, segments * costs.every) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_the_goodput_of_a_long_run_is_that_of_the_formula(seed: int) -> None:
    costs = drawn(seed)
    updates = [200 * costs.every, 400 * costs.every]
    # Without the first start and the end.
    seconds = expected_seconds(costs, updates[1]) - expected_seconds(costs, updates[0])
    assert 200 * costs.every / seconds == pytest.approx(goodputs.goodput(costs), rel=1e-9)


def test_without_failures_a_run_takes_what_its_parts_take() -> None:
    costs = Costs(2.0, 1.0, 30.0, 5.0, (9.0,), 10, math.inf, 0.5)
    # 10 updates, stall, 10 updates, wait for the write, stall, 5 updates, wait, stall, write, end.
    wanted = 5 + 20 + 1 + 30 + 1 + 30 + 1 + 30 + 0.5
    assert expected_seconds(costs, 25) == wanted
    assert simulate(costs, 25, random.Random(0)) == Outcome(wanted, 0, 0)
    assert goodputs.goodput(costs) == pytest.approx(20 / 31)


@pytest.mark.parametrize("stall", [0.1, 1.0, 20.0, 90.0])
def test_the_best_interval_has_the_highest_goodput(stall: float) -> None:
    costs = Costs(1e-3, stall, 0.0, 0.0, (7.0,), 1, 100.0)

    def at(interval: float) -> float:
        return goodputs.goodput(replace(costs, every=round(interval / costs.update)))

    best = best_interval(stall, costs.mean)
    around = [at(best * factor) for factor in (0.9, 0.97, 1.03, 1.1)]
    assert at(best) > max(around)
    assert daly(stall, costs.mean) == pytest.approx(best, rel=0.03)
    assert at(daly(stall, costs.mean)) == pytest.approx(at(best), rel=1e-3)
    if stall <= 1:
        assert young(stall, costs.mean) == pytest.approx(best, rel=0.06)


def test_measured_costs_are_read_from_the_result_file(tmp_path: Path) -> None:
    wanted = Costs(0.1, 0.01, 0.05, 1.0, (2.0, 2.5), 5, math.inf, 0.2)
    found = {name: value for name, value in vars(wanted).items() if name != "mean"}
    (tmp_path / "trials.json").write_text(json.dumps({"measured": found}))
    assert goodputs.measured(tmp_path / "trials.json") == wanted


def test_the_committed_trials_agree_with_the_simulator() -> None:
    path = Path(goodputs.__file__).parent / "results" / "goodput_trials.json"
    assert goodputs.measured(path).update > 0
    found = json.loads(path.read_text("utf-8"))
    assert found["trials"] >= 50
    assert found["differ"] == 0
    assert all(abs(off) <= 0.1 for off in found["off"].values())
