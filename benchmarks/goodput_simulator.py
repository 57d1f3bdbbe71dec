"""What failures cost: a run that is killed, restarted and resumed, simulated and calculated.

    python benchmarks/goodput_simulator.py [--measured results/goodput_trials.json]
        [--ranks 10 1000 10000] [--rank-hours 50000] [--update 1] [--stall 1] [--write 60]
        [--start 120] [--restart 180] [--minutes 5 30 240] [--checkpoints 30000] [--seed 0]

Goodput is the time that the updates of the finished run take, as a share of all the time from its
start to its end. Failures come at random (exponential times between them), at a rate proportional
to the ranks; one ends all ranks, and the run goes on from the newest checkpoint that was whole on
the disk. A checkpoint holds the training up for the stall (the copy) and is written beside it.

`simulate` plays such a run checkpoint by checkpoint; `expected_seconds` and `goodput` are formulas.
tests/test_goodput.py compares them. The best interval: Young (1974), "A first order approximation
to the optimum checkpoint interval", CACM 17(9); Daly (2006), "A higher order estimate of the
optimum checkpoint interval for restart dumps", FGCS 22(3); exactly for this model, `best_interval`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import table


@dataclass(frozen=True)
class Costs:
    """What a run is made of; seconds, but for `every`."""

    update: float
    stall: float
    """For which a checkpoint holds the training up."""
    write: float
    """From the end of the stall until the checkpoint is whole on the disk. The next one waits."""
    start: float
    """From the first start to the first update."""
    restarts: tuple[float, ...]
    """From a failure to the next update: measured ones, of which each is as likely."""
    every: int
    """Updates from one checkpoint to the next."""
    mean: float
    """Between two failures of any rank; `math.inf` without failures."""
    end: float = 0.0
    """From the last checkpoint on the disk to the end of the processes."""

    @property
    def segment(self) -> float:
        """From one checkpoint to the next."""
        return self.stall + max(self.every * self.update, self.write)


@dataclass(frozen=True)
class Outcome:
    """One simulated run."""

    seconds: float
    failures: int
    lost: int
    """Updates that were made again."""


def failure_times(mean: float, chance: random.Random) -> Iterator[float]:
    """Moments from the run's start, in order, without end."""
    moment = 0.0
    while True:
        moment += math.inf if math.isinf(mean) else chance.expovariate(1 / mean)
        yield moment


def simulate(
    costs: Costs, updates: int, chance: random.Random, failures: Iterator[float] | None = None
) -> Outcome:
    """Play a run of so many updates, under the `failures` given or random ones."""
    failures = failure_times(costs.mean, chance) if failures is None else failures
    clock, failure, saved, count, lost = costs.start, next(failures, math.inf), 0, 0, 0
    while True:
        clock, reached, whole = _life(costs, updates, clock, saved, failure)
        if clock <= failure:
            return Outcome(clock, count, lost)
        count, lost, saved = count + 1, lost + reached - whole, whole
        clock = failure + chance.choice(costs.restarts)
        failure = next(failures, math.inf)


def _life(
    costs: Costs, updates: int, clock: float, saved: int, failure: float
) -> tuple[float, int, int]:
    """Train from `saved` until the end or past the failure: (the clock then, the last update made
    before the failure, the newest one on the disk at the failure)."""
    done, reached, whole = saved, saved, saved
    under_way = (saved, clock)  # the update in the checkpoint last begun, and when it is whole
    while done < updates:
        following = min(updates, (done // costs.every + 1) * costs.every)
        if clock <= failure:  # else the restart itself failed
            reached = done + int(min((failure - clock) / costs.update, following - done))
        clock += (following - done) * costs.update
        if clock > failure:
            break
        done = following
        clock = max(clock, under_way[1])  # at most one write is under way
        if clock > failure:
            break
        whole = under_way[0]
        clock += costs.stall
        if clock > failure:
            break
        under_way = (done, clock + costs.write)
    else:
        clock = under_way[1] + costs.end
    if under_way[1] <= failure:
        whole = under_way[0]
    return clock, reached, whole


# ------------------------------------------------------------------------------- formulas


def _survives(seconds: float, mean: float) -> float:
    return math.exp(-seconds / mean)


def _schedule(costs: Costs, updates: int, saved: int) -> list[tuple[float, int]]:
    """When each checkpoint is on the disk, in a life without failure from `saved` on: seconds
    after its first update began, and the update."""
    found, clock, written, done = [], 0.0, 0.0, saved
    while done < updates:
        following = min(updates, (done // costs.every + 1) * costs.every)
        clock = max(clock + (following - done) * costs.update, written) + costs.stall
        written, done = clock + costs.write, following
        found.append((written, done))
    return found


def expected_seconds(costs: Costs, updates: int) -> float:
    """The mean time of a run of so many updates, exactly.

    From each state that can be on the disk: a life lasts until the failure or the end, and leaves
    a later state with the probability that the failure falls between two checkpoints.
    """
    if math.isinf(costs.mean):
        return costs.start + _schedule(costs, updates, 0)[-1][0] + costs.end
    mean = costs.mean
    restart = statistics.fmean(_survives(each, mean) for each in costs.restarts)
    after: dict[int, float] = {}
    for place in [updates, *reversed(range(0, updates, costs.every))]:
        total, stays = _from(costs, updates, place, restart, after)
        after[place] = total / (1 - stays)
    total, stays = _from(costs, updates, 0, _survives(costs.start, mean), after)
    return total + stays * after[0]


def _from(
    costs: Costs, updates: int, place: int, begins: float, after: dict[int, float]
) -> tuple[float, float]:
    """The mean time from a start at `place` to the end of the run, and the probability of a
    failure that leaves it at `place`, whose time after that is not counted in.

    `begins`: the probability that the training begins before the next failure.
    """
    saved = _schedule(costs, updates, place)
    reaches = [begins * _survives(moment, costs.mean) for moment, _ in saved]
    reaches.append((reaches or [begins])[-1] * _survives(costs.end, costs.mean))
    total = costs.mean * (1 - reaches[-1])  # the mean of min(failure, end)
    for (_, state), (here, following) in zip(saved, itertools.pairwise(reaches), strict=True):
        total += (here - following) * after[state]
    return total, 1 - reaches[0]


def goodput(costs: Costs) -> float:
    """Of a long run. Daly's formula (2006, equation 13), the time until a checkpoint is on the
    disk added to each restart: τ/M · e^(−(R+w)/M) / (e^(s/M) − 1)."""
    useful = costs.every * costs.update
    if math.isinf(costs.mean):
        return useful / costs.segment
    mean = costs.mean
    restart = statistics.fmean(_survives(each, mean) for each in costs.restarts)
    # The first checkpoint of a life waits for none before it.
    first = costs.stall + useful + costs.write
    return useful / mean * restart * _survives(first, mean) / -math.expm1(-costs.segment / mean)


def young(stall: float, mean: float) -> float:
    """The seconds of training between checkpoints, to first order: √(2δM)."""
    return math.sqrt(2 * stall * mean)


def daly(stall: float, mean: float) -> float:
    """The same to a higher order: √(2δM)·(1 + √(δ/2M)/3 + (δ/2M)/9) − δ, and M from δ = 2M on."""
    if stall >= 2 * mean:
        return mean
    part = stall / (2 * mean)
    return young(stall, mean) * (1 + math.sqrt(part) / 3 + part / 9) - stall


def best_interval(stall: float, mean: float) -> float:
    """Where the goodput is highest: τ = M·x with e^(−x−δ/M) = 1 − x, by Newton's method."""
    x = min(young(stall, mean) / mean, 0.5)
    for _ in range(100):
        decay = math.exp(-x - stall / mean)
        step = (decay - 1 + x) / (1 - decay)
        x -= step
        if abs(step) < 1e-13:
            break
    return x * mean


# ------------------------------------------------------------------------------- the table


def measured(path: Path) -> Costs:
    """The costs that benchmarks/goodput_trials.py measured."""
    found = json.loads(path.read_text("utf-8"))["measured"]
    return Costs(**{**found, "restarts": tuple(found["restarts"]), "mean": math.inf})


def rows(costs: Costs, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for ranks in options.ranks:
        mean = 3600 * options.rank_hours / ranks
        best = max(best_interval(costs.stall, mean), costs.write) / 60
        for minutes in [*options.minutes, None]:
            seconds = 60 * (best if minutes is None else minutes)
            here = replace(costs, every=max(round(seconds / costs.update), 1), mean=mean)
            yield {
                "ranks": f"{ranks:,}",
                "a failure every": _hours(mean),
                "checkpoint every": _hours(seconds) + (" (best)" if minutes is None else ""),
                "goodput": f"{100 * goodput(here):.1f} %",
                "simulated": _simulated(here, options),
            }


def _simulated(costs: Costs, options: argparse.Namespace) -> str:
    """The goodput of one run of so many checkpoints; nothing where failures are too rare in it to
    give a mean."""
    updates = options.checkpoints * costs.every
    run = simulate(costs, updates, random.Random(options.seed))
    return f"{100 * updates * costs.update / run.seconds:.1f} %" if run.failures >= 100 else "-"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds >= 5400 else f"{seconds / 60:.1f} min"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measured", type=Path, help="take the costs from this result file")
    parser.add_argument("--ranks", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--rank-hours", type=float, default=50_000, help="from failure to failure")
    for name, value in (("update", 1), ("stall", 1), ("write", 60), ("start", 120)):
        parser.add_argument(f"--{name}", type=float, default=value, help="seconds")
    parser.add_argument("--restart", type=float, default=180, help="seconds")
    parser.add_argument("--minutes", type=float, nargs="+", default=[5, 30, 240])
    parser.add_argument("--checkpoints", type=int, default=30_000, help="of a simulated run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    costs = Costs(
        options.update, options.stall, options.write, options.start, (options.restart,), 1, math.inf
    )
    if options.measured is not None:
        costs = measured(options.measured)
    print(table(list(rows(costs, options))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
