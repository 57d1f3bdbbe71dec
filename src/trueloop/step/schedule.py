"""How a schedule is described, built and ticked; the schedules themselves are `trueloop.schedules`.

A schedule is described first and built when the optimizer and the length of the run are known
(`Step.plan`, which `fit` calls): the clocks are `update` (ticks after each real update), `epoch`
and `metric` (ticks at the end of an epoch).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch.optim import Optimizer, lr_scheduler as torch_schedulers
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from trueloop import _options
from trueloop.errors import ConfigError, ScheduleError
from trueloop.records import EvalRecord, direction as direction_of, monitored, names_like
from trueloop.step.loading import load_scheduler

Length = int | float | str
Scores = EvalRecord | Mapping[str, float] | float

TICKS = ("update", "epoch", "metric")


@dataclass(frozen=True)
class Plan:
    """How long a run is."""

    epochs: int
    """Passes over the training data."""
    updates_per_epoch: int | None
    """Optimizer updates in each; None when the data has no length."""

    def ticks(self, clock: str) -> int | None:
        """How often a clock ticks in the whole run."""
        if clock != "update":
            return self.epochs
        return None if self.updates_per_epoch is None else self.epochs * self.updates_per_epoch


@dataclass(frozen=True)
class Schedule:
    """A schedule described but not built: see the functions of this module."""

    name: str
    tick: str
    """Its clock: `update`, `epoch` or `metric`."""
    build: Callable[[Optimizer, Resolver], LRScheduler]
    monitor: str | None = None
    """For the `metric` clock: the score it watches."""

    def __post_init__(self) -> None:
        if self.tick not in TICKS:
            raise ConfigError(f"unknown tick {self.tick!r}: write update, epoch or metric")


class Resolver:
    """Turns lengths into ticks of one clock, by the plan of the run where that is needed."""

    def __init__(self, clock: str, plan: Plan | None) -> None:
        self.clock = clock
        self.plan = plan

    def whole(self) -> int:
        """The ticks of the whole run."""
        if self.plan is None:
            raise _unplanned(None)
        total = self.plan.ticks(self.clock)
        if total is None:
            raise ScheduleError(
                "the training data has no length, so neither has the schedule: "
                "give the schedule's length in updates, e.g. cosine(10_000)"
            )
        return total

    def __call__(self, length: Length | None) -> int:
        """`length` in ticks; the whole run for None."""
        if length is None:
            return self.whole()
        amount, unit = parse_length(length)
        own = "updates" if self.clock == "update" else "epochs"
        if unit in ("ticks", own):
            return int(amount)
        if unit == "share":
            return round(amount * self.whole())
        if self.plan is None or self.plan.updates_per_epoch is None:
            raise _unplanned(length)
        per_epoch = self.plan.updates_per_epoch
        if unit == "epochs":
            return round(amount * per_epoch)
        if amount % per_epoch:
            raise ScheduleError(
                f"{length!r} is no whole number of epochs of {per_epoch} updates, and the schedule "
                "ticks per epoch: give its length in epochs, or write tick='update'"
            )
        return int(amount) // per_epoch


def _unplanned(length: Length | None) -> ScheduleError:
    what = "the whole run" if length is None else repr(length)
    return ScheduleError(
        f"the schedule's length is {what}, and nobody said how long the run is: call "
        "step.plan(epochs=…, batches=len(train)) before the first batch, or give it in updates"
    )


def parse_length(length: Length) -> tuple[float, str]:
    """(amount, unit): unit is `ticks`, `share`, `epochs` or `updates`; `ConfigError` if none."""
    amount, unit = math.nan, ""
    if isinstance(length, bool):
        pass
    elif isinstance(length, int):
        amount, unit = length, "ticks"
    elif isinstance(length, float):
        amount, unit = length, "share"
    elif isinstance(length, str):
        text = length.strip().lower().replace("_", "").replace("%", " %")
        number, _, word = text.partition(" ")
        units = {
            "%": "share",
            "epoch": "epochs",
            "epochs": "epochs",
            "update": "updates",
            "updates": "updates",
        }
        try:
            amount = float(number) / (100 if word.strip() == "%" else 1)
        except ValueError:
            amount = math.nan
        unit = units.get(word.strip(), "")
        if number.isdecimal() and not word.strip():
            raise ConfigError(
                f"length {length!r}: {number} of what? write '{number} epochs', "
                f"'{number} updates' or '{number}%'"
            )
    whole = unit in ("ticks", "updates")
    fits = math.isfinite(amount) and amount >= 0 and not (whole and amount % 1)
    if not unit or not fits or (unit == "share" and amount > 1):
        raise ConfigError(
            f"length {length!r} is not understood: write an int (ticks), '5%' (a share of the "
            "run), '20 epochs' or '300 updates'"
        )
    return amount, unit


def resolve_mode(monitor: str, mode: str) -> Literal["min", "max"]:
    """`min` or `max` for a score's name; `ConfigError` when `auto` cannot tell."""
    _options.text("monitor", monitor, "val_loss")
    if _options.choice("mode", mode, ("min", "max", "auto")) != "auto":
        return "min" if mode == "min" else "max"
    found = direction_of(monitor)
    if found is None:
        meant = " or ".join(repr(name) for name in names_like(monitor))
        raise ConfigError(
            f"whether the score {monitor!r} should rise or fall is not known: "
            + (f"did you mean {meant}? If not, " if meant else "")
            + "write mode='min' or mode='max'"
        )
    return found


class Clock:
    """A built schedule that ticks on its own clock and on no other."""

    def __init__(self, schedule: Schedule, optimizer: Optimizer, plan: Plan | None) -> None:
        self.schedule = schedule
        self.scheduler = schedule.build(optimizer, Resolver(schedule.tick, plan))

    def check(self, plan: Plan, *, saved: bool = False) -> None:
        """Raise `ScheduleError` unless the schedule ends where the run ends (to one tick).

        `saved`: its length comes from a checkpoint, which changes the remedy.
        """
        run, own = plan.ticks(self.schedule.tick), _length(self.scheduler)
        if run is None or own is None:
            return
        unit = f"{self.schedule.tick}s"
        if isinstance(self.scheduler, torch_schedulers.CosineAnnealingWarmRestarts):
            _check_restarts(self.scheduler, run, unit)
        elif isinstance(self.scheduler, torch_schedulers.MultiStepLR):
            if own >= run:
                raise ScheduleError(
                    f"the schedule's step at {unit[:-1]} {own} lies beyond the run of {run} "
                    f"{unit}: move it forward, or give it as a share such as '75%'"
                )
        elif abs(own - run) > 1 or (own < run and _ends_for_good(self.scheduler)):
            remedy = "leave the length out (it is then the run's), or make the two agree"
            if saved:
                remedy = "go on with the epochs, batches and accumulation of the run that was saved"
            raise ScheduleError(
                f"the schedule is {own} {unit} long, but the run makes {run}: {remedy}"
                + _micro_batch_hint(own, run)
            )

    def tick_update(self) -> None:
        if self.schedule.tick == "update":
            self._tick()

    def tick_epoch(self, scores: Scores | None) -> None:
        if self.schedule.tick == "epoch":
            self._tick()
        elif self.schedule.tick == "metric":
            assert isinstance(self.scheduler, ReduceLROnPlateau)
            assert self.schedule.monitor is not None
            self.scheduler.step(score(scores, self.schedule.monitor))

    def _tick(self) -> None:
        scheduler = self.scheduler
        is_sequence = isinstance(scheduler, torch_schedulers.SequentialLR)
        if not (is_sequence and scheduler.last_epoch + 1 in vars(scheduler)["_milestones"]):
            scheduler.step()
            return
        # Older torch warns here of a call of its own, which nobody else can change.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The epoch parameter", UserWarning)
            scheduler.step()

    def state_dict(self) -> dict[str, Any]:
        return dict(self.scheduler.state_dict())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_scheduler(self.scheduler, state)


def score(scores: Scores | None, monitor: str) -> float:
    """The monitored number among an epoch's scores; `ConfigError` if it is not there."""
    if isinstance(scores, (int, float)):
        return float(scores)
    named = scores.scores if isinstance(scores, EvalRecord) else dict(scores or {})
    plain = monitor.removeprefix("val_")
    return monitored(named, plain if plain in named and monitor not in named else monitor)


def _ends_for_good(scheduler: LRScheduler) -> bool:
    """Whether one tick beyond its length is an error of torch's."""
    return isinstance(scheduler, torch_schedulers.OneCycleLR)


def _micro_batch_hint(own: int, run: int) -> str:
    ratio = own / run if run else 0.0
    if ratio >= 2 and abs(ratio - round(ratio)) < 0.05:
        return f" (it is {round(ratio)} times the run: was it counted in micro-batches?)"
    return ""


def _check_restarts(
    scheduler: torch_schedulers.CosineAnnealingWarmRestarts, run: int, unit: str
) -> None:
    cycle = end = scheduler.T_0
    ends = [end]
    while end < run:
        cycle *= scheduler.T_mult
        end += cycle
        ends.append(end)
    if min(abs(end - run) for end in ends) > max(1, run // 50):
        near = " or ".join(str(end) for end in ends[-2:])
        raise ScheduleError(
            f"the cycles of warm restarts end at {near} {unit}, but the run at {run}, inside one: "
            "give cycles= instead of first=, or change the run's length"
        )


def _length(scheduler: LRScheduler) -> int | None:
    """How many ticks a scheduler is made for; None where torch does not say or there is no end."""
    s = torch_schedulers
    if isinstance(scheduler, s.OneCycleLR):
        return int(scheduler.total_steps)
    if isinstance(scheduler, s.CosineAnnealingLR):
        return int(scheduler.T_max)
    if isinstance(scheduler, s.PolynomialLR):
        return int(scheduler.total_iters)
    if isinstance(scheduler, s.CosineAnnealingWarmRestarts):
        return int(scheduler.T_0)
    if isinstance(scheduler, s.MultiStepLR):
        return max(scheduler.milestones, default=0)
    if isinstance(scheduler, s.SequentialLR):
        last = _length(scheduler._schedulers[-1])
        return None if last is None else int(scheduler._milestones[-1]) + last
    return None
