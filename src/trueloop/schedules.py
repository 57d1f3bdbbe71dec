"""Learning-rate schedules, each on its own clock and as long as the run.

A schedule is described here and built when the optimizer and the length of the run are known
(`Step.plan`, which `fit` calls). Its clock (`tick`) is `update`: it ticks after each real update;
`epoch`: at the end of each epoch; or `metric`: at the end of each epoch, with a score. Lengths are
written as

- an int: that many ticks of the schedule's own clock,
- a float in (0, 1] or "5%": a share of the run,
- "20 epochs" or "300 updates".

All of them are torch's own schedulers underneath, with torch's own arithmetic, but for
`warmup_stable_decay`, which torch does not have; every parameter group keeps the ratio of its lr to
the others'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.optim import Optimizer, lr_scheduler as torch_schedulers
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from trueloop import _options
from trueloop.errors import ConfigError, ScheduleError
from trueloop.step.schedule import (
    Length,
    Plan,
    Resolver,
    Schedule,
    check_length,
    parse_length,
    resolve_mode,
)
from trueloop.step.torch_schedule import from_torch
from trueloop.step.warmup_stable_decay import SHAPES, WarmupStableDecay

__all__ = [
    "Length",
    "Plan",
    "Schedule",
    "by_name",
    "cosine",
    "from_torch",
    "one_cycle",
    "parse_length",
    "plateau",
    "resolve_mode",
    "step_decay",
    "warm_restarts",
    "warmup_cosine",
    "warmup_stable_decay",
]


def cosine(length: Length | None = None, *, eta_min: float = 0.0, tick: str = "update") -> Schedule:
    """Half a cosine from the optimizer's lr down to `eta_min`.

    lr(t) = eta_min + (lr - eta_min) (1 + cos(π t / length)) / 2. Loshchilov and Hutter, "SGDR:
    stochastic gradient descent with warm restarts", ICLR 2017, without the restarts.

    Args:
        length: ticks from the start to `eta_min`, see the top of this module; None: the whole run.
        eta_min: the lr at the end, 0 or above.
        tick: `update` or `epoch`.

    Returns:
        The schedule, for `Step(schedule=...)`.

    Raises:
        ConfigError: a value that cannot work.
        ScheduleError: from `Step.plan`, if the length is not the run's.
    """
    check_length("length", length)
    eta_min = _options.not_negative("eta_min", eta_min)

    def build(optimizer: Optimizer, ticks: Resolver) -> LRScheduler:
        return torch_schedulers.CosineAnnealingLR(optimizer, ticks(length), eta_min=eta_min)

    return Schedule("cosine", _clock(tick), build)


def warmup_cosine(
    warmup: Length = "5%",
    length: Length | None = None,
    *,
    start_factor: float = 0.01,
    eta_min: float = 0.0,
    tick: str = "update",
) -> Schedule:
    """A linear rise from `start_factor` · lr to lr, then half a cosine down to `eta_min`.

    The warm-up is that of Goyal et al., "Accurate, large minibatch SGD", 2017.

    Args:
        warmup: ticks of the rise, see the top of this module; 0: none.
        length: ticks of both parts together; None: the whole run.
        start_factor: the first lr as a share of the optimizer's, above 0 and at most 1.
        eta_min: the lr at the end, 0 or above.
        tick: `update` or `epoch`.

    Returns:
        The schedule, for `Step(schedule=...)`.

    Raises:
        ConfigError: a value that cannot work.
        ScheduleError: here or from `Step.plan`: the warm-up fills the schedule, or the length is
            not the run's.
    """
    _check_warmup(warmup)
    check_length("length", length)
    start_factor = _start_factor(start_factor)
    eta_min = _options.not_negative("eta_min", eta_min)

    def build(optimizer: Optimizer, ticks: Resolver) -> LRScheduler:
        total, rise = ticks(length), ticks(warmup)
        _check_rise(rise, total, tick)
        if rise == 0:
            return torch_schedulers.CosineAnnealingLR(optimizer, total, eta_min=eta_min)
        linear = torch_schedulers.LinearLR(optimizer, start_factor, 1.0, total_iters=rise)
        fall = torch_schedulers.CosineAnnealingLR(optimizer, total - rise, eta_min=eta_min)
        return torch_schedulers.SequentialLR(optimizer, [linear, fall], milestones=[rise])

    return Schedule("warmup_cosine", _clock(tick), build)


def _check_parts(rise: int, fall: int, total: int, tick: str) -> None:
    _check_rise(rise, total, tick)
    if rise + fall > total:
        raise ScheduleError(
            f"a warm-up of {rise} and a decay of {fall} {tick}s do not fit into {total}: "
            "shorten one of them, e.g. decay='20%'"
        )


def warmup_stable_decay(
    warmup: Length = "5%",
    decay: Length = "20%",
    length: Length | None = None,
    *,
    shape: str = "linear",
    start_factor: float = 0.01,
    eta_min: float = 0.0,
    tick: str = "update",
) -> Schedule:
    """A linear rise from `start_factor` · lr to lr, the lr itself, then a decay to `eta_min`.

    Hu et al., "MiniCPM: unveiling the potential of small language models", 2024; with x the share
    of the decay that is over, the lr is eta_min + (lr - eta_min) · (1 - x), (1 + cos πx) / 2 in the
    place of 1 - x, or 1 - √x, which Hägele et al., "Scaling laws and compute-optimal training
    beyond fixed training durations", 2024, found best.

    Until the decay begins the curve does not depend on the run's length, so a run can be extended:
    a checkpoint from before the decay, with its warm-up, can be resumed in a longer run. One from
    within the decay raises `ScheduleError` in a run of any other length.

    Args:
        warmup: ticks of the rise, see the top of this module; 0: none.
        decay: ticks of the decay; 0: none.
        length: ticks of all three parts together; None: the whole run.
        shape: of the decay: `linear`, `cosine` or `1-sqrt`.
        start_factor: the first lr as a share of the optimizer's, above 0 and at most 1.
        eta_min: the lr at the end, 0 or above.
        tick: `update` or `epoch`.

    Returns:
        The schedule, for `Step(schedule=...)`.

    Raises:
        ConfigError: a value that cannot work.
        ScheduleError: here or from `Step.plan`: the warm-up and the decay do not fit, or the length
            is not the run's.
    """
    _check_warmup(warmup)
    check_length("decay", decay, zero=True)
    check_length("length", length)
    _options.by_name("shape of a decay", shape, SHAPES)
    start_factor = _start_factor(start_factor)
    eta_min = _options.not_negative("eta_min", eta_min)

    def build(optimizer: Optimizer, ticks: Resolver) -> LRScheduler:
        total, rise, fall = ticks(length), ticks(warmup), ticks(decay)
        _check_parts(rise, fall, total, tick)
        return WarmupStableDecay(
            optimizer,
            warmup=rise,
            decay_from=total - fall,
            length=total,
            shape=shape,
            start_factor=start_factor,
            eta_min=eta_min,
            tick=tick,
        )

    return Schedule("warmup_stable_decay", _clock(tick), build)


def one_cycle(
    length: Length | None = None,
    *,
    max_lr: float | None = None,
    warmup: Length = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
    cycle_momentum: bool = True,
) -> Schedule:
    """Up to `max_lr` over `warmup`, then down to almost nothing: half a cosine each.

    Smith and Topin, "Super-convergence", 2018 (torch's `OneCycleLR`). It ticks per update.

    Args:
        length: updates of the whole cycle, see the top of this module; None: the whole run.
        max_lr: the highest lr, above 0; None: the optimizer's, of each parameter group.
        warmup: updates of the rise.
        div_factor: the first lr is max_lr / div_factor.
        final_div_factor: the last lr is max_lr / (div_factor · final_div_factor).
        cycle_momentum: let the momentum (or the first beta) fall from 0.95 to 0.85 while the lr
            rises, and rise while it falls; an optimizer that has neither does not change.

    Returns:
        The schedule, for `Step(schedule=...)`.

    Raises:
        ConfigError: a value that cannot work.
        ScheduleError: from `Step.plan`, if the length is not the run's.
    """
    check_length("length", length)
    check_length("warmup", warmup, zero=True)
    if max_lr is not None:
        max_lr = _options.positive("max_lr", max_lr, "0.1")
    div_factor = _options.positive("div_factor", div_factor, "25.0")
    final_div_factor = _options.positive("final_div_factor", final_div_factor, "1e4")
    _options.flag("cycle_momentum", cycle_momentum)

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

    Torch's `ReduceLROnPlateau`. It ticks at the end of an epoch, with that epoch's scores:
    `step.end_epoch(scores)`.

    Args:
        monitor: the score to watch: `val_loss`, `train_loss`, `val_accuracy`, …
        mode: `min`, `max` or `auto`: by the score's name (losses and errors should fall, accuracy
            and its kind should rise).
        factor: from 0 to 1, both excluded.
        patience: epochs without a better score that pass before the lr falls.
        threshold: how much better counts as better, as a share of the best score.
        cooldown: epochs after a fall during which none are counted.
        min_lr: the lr does not fall below it.

    Returns:
        The schedule, for `Step(schedule=...)`.

    Raises:
        ConfigError: a value that cannot work, or a score whose direction is not known.
    """
    direction = resolve_mode(monitor, mode)
    factor = _fraction("factor", factor)
    patience = _options.whole("patience", patience, 0, 10)
    threshold = _options.not_negative("threshold", threshold, "1e-4")
    cooldown = _options.whole("cooldown", cooldown, 0)
    min_lr = _options.not_negative("min_lr", min_lr)

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
    """Cosine cycles from the optimizer's lr to `eta_min`, each `mult` times as long as the last.

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.
    Without `first`, `cycles` of them fill the run, each cut to a whole number of ticks: the run
    ends in a valley, not just after a restart.

    Args:
        first: ticks of the first cycle, see the top of this module; None: as `cycles` says.
        cycles: how many fill the run; only without `first`.
        mult: 1 or more; 1 makes all cycles equally long.
        eta_min: the lr at the end of a cycle, 0 or above.
        tick: `update` or `epoch`.

    Returns:
        The schedule, for `Step(schedule=...)`.

    Raises:
        ConfigError: a value that cannot work.
        ScheduleError: from `Step.plan`, if the run ends inside a cycle.
    """
    check_length("first", first)
    cycles = _options.whole("cycles", cycles, 1, 3)
    mult = _options.whole("mult", mult, 1, 2)
    eta_min = _options.not_negative("eta_min", eta_min)

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

    return Schedule("warm_restarts", _clock(tick), build)


_MILESTONES: tuple[Length, ...] = ("50%", "75%")


def step_decay(
    every: Length | None = None,
    *,
    at: Sequence[Length] | None = None,
    gamma: float = 0.1,
    tick: str = "epoch",
) -> Schedule:
    """Multiply the lr by `gamma` every `every`, or else at each of the milestones `at`.

    Torch's `StepLR` and `MultiStepLR`.

    Args:
        every: ticks between two falls, see the top of this module.
        at: ticks at which the lr falls, without `every`; None: after 50% and 75% of the run.
        gamma: from 0 to 1, both excluded.
        tick: `update` or `epoch`.

    Returns:
        The schedule, for `Step(schedule=...)`.

    Raises:
        ConfigError: a value that cannot work, or both `every` and `at`.
        ScheduleError: from `Step.plan`, for a milestone beyond the run.
    """
    check_length("every", every)
    gamma = _fraction("gamma", gamma)
    if every is not None and at is not None:
        raise ConfigError("step_decay takes every or at, not both: leave one of them out")
    if at is not None and (not isinstance(at, (tuple, list)) or not at):
        raise ConfigError(
            f"at={_options.shown(at)} is not a tuple of milestones: write e.g. at=('50%', '75%')"
        )
    milestones = _MILESTONES if at is None else tuple(at)
    for milestone in milestones:
        check_length("at", milestone)

    def build(optimizer: Optimizer, ticks: Resolver) -> LRScheduler:
        if every is not None:
            return torch_schedulers.StepLR(optimizer, max(1, ticks(every)), gamma)
        return torch_schedulers.MultiStepLR(
            optimizer, [ticks(milestone) for milestone in milestones], gamma
        )

    return Schedule("step_decay", _clock(tick), build)


def by_name(
    name: str,
    *,
    warmup: Length | None = None,
    decay: Length | None = None,
    decay_shape: str | None = None,
    monitor: str = "val_loss",
) -> Schedule | None:
    """A schedule with its defaults, by the name of its function.

    Args:
        name: `cosine`, `warmup_cosine`, `warmup_stable_decay`, `one_cycle`, `plateau`,
            `warm_restarts`, `step_decay` or `none`.
        warmup: of `warmup_cosine`, `warmup_stable_decay` and `one_cycle`; None: their own default.
        decay: of `warmup_stable_decay`; None: its own default.
        decay_shape: of `warmup_stable_decay`: `linear`, `cosine` or `1-sqrt`; None: `linear`.
        monitor: the score that `plateau` watches.

    Returns:
        The schedule; None for `none`.

    Raises:
        ConfigError: an unknown name, or an option that the schedule does not have.
        ScheduleError: a warm-up that is the whole run.
    """
    rise: dict[str, Any] = {} if warmup is None else {"warmup": warmup}
    fall: dict[str, Any] = {} if decay is None else {"decay": decay}
    if decay_shape is not None:
        fall["shape"] = _options.by_name("decay shape", decay_shape, SHAPES)
    known: dict[str, Callable[[], Schedule | None]] = {
        "none": lambda: None,
        "cosine": cosine,
        "warmup_cosine": lambda: warmup_cosine(**rise),
        "warmup_stable_decay": lambda: warmup_stable_decay(**rise, **fall),
        "one_cycle": lambda: one_cycle(**rise),
        "plateau": lambda: plateau(monitor),
        "warm_restarts": warm_restarts,
        "step_decay": step_decay,
    }
    _options.by_name("schedule", name, known)
    if warmup is not None:
        parse_length(warmup)
        if name not in ("warmup_cosine", "warmup_stable_decay", "one_cycle"):
            raise ConfigError(
                f"the schedule {name!r} has no warm-up: leave warmup out, or choose warmup_cosine"
            )
    if fall and name != "warmup_stable_decay":
        what = "decay" if decay is not None else "decay_shape"
        raise ConfigError(
            f"the schedule {name!r} does not take {what}: leave it out, or choose "
            "warmup_stable_decay"
        )
    return known[name]()


def _clock(tick: Any) -> str:
    return _options.choice("tick", tick, ("update", "epoch"))


def _fraction(option: str, value: Any) -> float:
    """A number between 0 and 1."""
    if not 0 < _options.number(option, value, "0.1") < 1:
        raise ConfigError(f"{option}={value!r} must be between 0 and 1: write e.g. {option}=0.1")
    return float(value)


def _check_warmup(warmup: Any) -> None:
    check_length("warmup", warmup, zero=True)
    if parse_length(warmup) == (1.0, "share"):
        raise ScheduleError(
            f"warmup={warmup!r} is the whole run: shorten it, e.g. warmup='5%', or write warmup=1 "
            "for one tick"
        )


def _check_rise(rise: int, total: int, tick: str) -> None:
    if rise >= total:
        raise ScheduleError(
            f"the warm-up of {rise} {tick}s fills the whole schedule of {total}: shorten it, "
            "e.g. warmup='5%'"
        )


def _start_factor(value: Any) -> float:
    factor = _options.positive("start_factor", value, "0.01")
    if factor > 1:
        raise ConfigError(f"start_factor={factor} would fall: write e.g. start_factor=0.01")
    return factor
