"""Learning-rate schedules, each on its own clock and as long as the run.

A schedule is described first and built when the optimizer and the length of the run are known
(`Step.plan`, which `fit` calls): the clocks are `update` (ticks after each real update), `epoch`
and `metric` (ticks at the end of an epoch). Lengths are written as

- an int: that many ticks of the schedule's own clock,
- a float in (0, 1] or "5%": a share of the run,
- "20 epochs" or "300 updates".

All of them are torch's own schedulers underneath, with torch's own arithmetic.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch.optim import Optimizer, lr_scheduler as torch_schedulers
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from trueloop.errors import ConfigError, ScheduleError, nearest
from trueloop.records import EvalRecord, direction as direction_of, monitored

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


def cosine(length: Length | None = None, *, eta_min: float = 0.0, tick: str = "update") -> Schedule:
    """Half a cosine from the optimizer's lr to `eta_min` (Loshchilov and Hutter, 2017)."""

    def build(optimizer: Optimizer, ticks: Resolver) -> LRScheduler:
        return torch_schedulers.CosineAnnealingLR(optimizer, ticks(length), eta_min=eta_min)

    return Schedule("cosine", tick, build)


def warmup_cosine(
    warmup: Length = "5%",
    length: Length | None = None,
    *,
    start_factor: float = 0.01,
    eta_min: float = 0.0,
    tick: str = "update",
) -> Schedule:
    """A linear rise from `start_factor` · lr over `warmup`, then half a cosine to `eta_min`.

    `length` counts both parts; the default is the whole run.
    """

    def build(optimizer: Optimizer, ticks: Resolver) -> LRScheduler:
        total, rise = ticks(length), ticks(warmup)
        if rise >= total:
            raise ScheduleError(
                f"the warm-up of {rise} {tick}s fills the whole schedule of {total}: shorten it, "
                "e.g. warmup='5%'"
            )
        if rise == 0:
            return torch_schedulers.CosineAnnealingLR(optimizer, total, eta_min=eta_min)
        linear = torch_schedulers.LinearLR(optimizer, start_factor, 1.0, total_iters=rise)
        fall = torch_schedulers.CosineAnnealingLR(optimizer, total - rise, eta_min=eta_min)
        return torch_schedulers.SequentialLR(optimizer, [linear, fall], milestones=[rise])

    return Schedule("warmup_cosine", tick, build)


def one_cycle(
    length: Length | None = None,
    *,
    max_lr: float | None = None,
    warmup: Length = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
    cycle_momentum: bool = True,
) -> Schedule:
    """Up to `max_lr` (default: the optimizer's lr) over `warmup`, then down (Smith, 2018)."""

    def build(optimizer: Optimizer, ticks: Resolver) -> LRScheduler:
        total = ticks(length)
        amount, unit = parse_length(warmup)
        return torch_schedulers.OneCycleLR(
            optimizer,
            max_lr=[max_lr or group["lr"] for group in optimizer.param_groups],
            total_steps=total,
            # A share is passed on as it is: rounding it to ticks would be another curve.
            pct_start=amount if unit == "share" else ticks(warmup) / total,
            div_factor=div_factor,
            final_div_factor=final_div_factor,
            # An optimizer with neither momentum nor betas has nothing to cycle.
            cycle_momentum=cycle_momentum
            and any(group.get("momentum") or "betas" in group for group in optimizer.param_groups),
        )

    return Schedule("one_cycle", "update", build)


def plateau(
    monitor: str = "val_loss",
    *,
    mode: str = "auto",
    factor: float = 0.1,
    patience: int = 10,
    threshold: float = 1e-4,
    cooldown: int = 0,
    min_lr: float = 0.0,
) -> Schedule:
    """Multiply the lr by `factor` after `patience` epochs without a better `monitor`.

    `mode` is `min`, `max` or `auto`: by the score's name (losses and errors should fall, accuracy
    and its kind should rise).
    """
    direction = resolve_mode(monitor, mode)

    def build(optimizer: Optimizer, ticks: Resolver) -> LRScheduler:
        return ReduceLROnPlateau(
            optimizer,
            mode=direction,
            factor=factor,
            patience=patience,
            threshold=threshold,
            cooldown=cooldown,
            min_lr=min_lr,
        )

    return Schedule("plateau", "metric", build, monitor)


def warm_restarts(
    first: Length | None = None,
    *,
    cycles: int = 3,
    mult: int = 2,
    eta_min: float = 0.0,
    tick: str = "update",
) -> Schedule:
    """Cosine cycles, each `mult` times as long as the last (Loshchilov and Hutter, 2017).

    Without `first`, `cycles` of them fill the run, each cut to a whole number of ticks: the run
    ends in a valley, not just after a restart.
    """

    def build(optimizer: Optimizer, ticks: Resolver) -> LRScheduler:
        kind = torch_schedulers.CosineAnnealingWarmRestarts
        if first is not None:
            return kind(optimizer, ticks(first), mult, eta_min)
        run = ticks.whole()
        ends = [sum(mult**k for k in range(n)) for n in range(1, cycles + 1)]
        if run % ends[-1] == 0:
            return kind(optimizer, run // ends[-1], mult, eta_min)
        ends = [round(run * end / ends[-1]) for end in ends]
        lengths = [end - start for start, end in zip([0, *ends], ends, strict=False)]
        if min(lengths) < 1:
            raise ScheduleError(
                f"{cycles} cycles do not fit into a run of {run} {tick}s: write fewer cycles="
            )
        parts = [torch_schedulers.CosineAnnealingLR(optimizer, n, eta_min) for n in lengths]
        return torch_schedulers.SequentialLR(optimizer, list(parts), milestones=ends[:-1])

    return Schedule("warm_restarts", tick, build)


def step_decay(
    every: Length | None = None,
    *,
    at: tuple[Length, ...] = ("50%", "75%"),
    gamma: float = 0.1,
    tick: str = "epoch",
) -> Schedule:
    """Multiply the lr by `gamma` every `every`, or else at each of the milestones `at`."""

    def build(optimizer: Optimizer, ticks: Resolver) -> LRScheduler:
        if every is not None:
            return torch_schedulers.StepLR(optimizer, max(1, ticks(every)), gamma)
        return torch_schedulers.MultiStepLR(
            optimizer, [ticks(milestone) for milestone in at], gamma
        )

    return Schedule("step_decay", tick, build)


def from_torch(
    scheduler: LRScheduler | Callable[[Optimizer], LRScheduler],
    tick: str,
    *,
    monitor: str | None = None,
) -> Schedule:
    """Any scheduler of torch's, built or as a function of the optimizer, on the clock `tick`.

    Its length is checked against the run's where torch says what it is.
    """
    watches = isinstance(scheduler, ReduceLROnPlateau)
    if isinstance(scheduler, LRScheduler) and watches != (tick == "metric"):
        right = "metric" if watches else "update' or 'epoch"
        raise ScheduleError(
            f"{type(scheduler).__name__} cannot tick per {tick}: write tick='{right}'"
        )

    def build(optimizer: Optimizer, ticks: Resolver) -> LRScheduler:
        if not isinstance(scheduler, LRScheduler):
            return scheduler(optimizer)
        if scheduler.optimizer is not optimizer:
            raise ScheduleError(
                f"this {type(scheduler).__name__} drives another optimizer than the step's: "
                "build it with the optimizer that you give to Step"
            )
        return scheduler

    name = type(scheduler).__name__ if isinstance(scheduler, LRScheduler) else "from_torch"
    return Schedule(name, tick, build, (monitor or "val_loss") if tick == "metric" else None)


def by_name(
    name: str, *, warmup: Length | None = None, monitor: str = "val_loss"
) -> Schedule | None:
    """A schedule with its defaults by name; None for `none`; `ConfigError` for any other.

    `warmup` is for `warmup_cosine` and `one_cycle`; None is their own default.
    """
    rise: dict[str, Any] = {} if warmup is None else {"warmup": warmup}
    known: dict[str, Callable[[], Schedule | None]] = {
        "none": lambda: None,
        "cosine": cosine,
        "warmup_cosine": lambda: warmup_cosine(**rise),
        "one_cycle": lambda: one_cycle(**rise),
        "plateau": lambda: plateau(monitor),
        "warm_restarts": warm_restarts,
        "step_decay": step_decay,
    }
    if name not in known:
        raise ConfigError(f"unknown schedule {name!r}: {nearest(name, known)}")
    if warmup is not None:
        parse_length(warmup)
        if name not in ("warmup_cosine", "one_cycle"):
            raise ConfigError(
                f"the schedule {name!r} has no warm-up: leave warmup out, or choose warmup_cosine"
            )
    return known[name]()


def resolve_mode(monitor: str, mode: str) -> Literal["min", "max"]:
    """`min` or `max` for a score's name; `ConfigError` when `auto` cannot tell."""
    if mode in ("min", "max"):
        return "min" if mode == "min" else "max"
    if mode != "auto":
        raise ConfigError(f"unknown mode {mode!r}: write min, max or auto")
    found = direction_of(monitor)
    if found is None:
        raise ConfigError(
            f"whether {monitor!r} should rise or fall is not known: write mode='min' or 'max'"
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
        self.scheduler.load_state_dict(state)


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
