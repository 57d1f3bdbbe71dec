"""A scheduler of torch's, on a clock that the user names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from trueloop import _options
from trueloop.errors import ConfigError, ScheduleError
from trueloop.step.schedule import Resolver, Schedule


def from_torch(
    scheduler: LRScheduler | Callable[[Optimizer], LRScheduler],
    tick: str,
    *,
    monitor: str | None = None,
) -> Schedule:
    """Any scheduler of torch's, built or as a function of the optimizer, on the clock `tick`.

    Its length is checked against the run's where torch says what it is.

    Args:
        scheduler: a `torch.optim.lr_scheduler.LRScheduler` of the step's own optimizer, or a
            function that makes one: `lambda optimizer: StepLR(optimizer, 30)`.
        tick: when `scheduler.step()` is called: `update`, `epoch`, or `metric` for
            `ReduceLROnPlateau`.
        monitor: the score that a `metric` one watches; None: `val_loss`.

    Returns:
        The schedule, for `Step(schedule=...)`.

    Raises:
        ConfigError: it is not a scheduler, or has a `monitor` without the `metric` clock.
        ScheduleError: it does not have this clock; or, when the step builds it, it is a scheduler
            of a different optimizer.
    """
    _check_torch_scheduler(scheduler)
    if isinstance(scheduler, LRScheduler):
        _check_tick_of(scheduler, tick)
    if monitor is not None:
        _options.text("monitor", monitor, "val_loss")
        if tick != "metric":
            raise ConfigError(
                f"monitor={monitor!r} is for tick='metric', and this schedule ticks per {tick}: "
                "leave monitor out"
            )

    def build(optimizer: Optimizer, ticks: Resolver) -> LRScheduler:
        built = scheduler if isinstance(scheduler, LRScheduler) else scheduler(optimizer)
        if not isinstance(built, LRScheduler):
            raise ScheduleError(
                f"the function given to from_torch returned {_options.kind_of(built)}: let it "
                "return a scheduler, e.g. lambda optimizer: StepLR(optimizer, 30)"
            )
        _check_tick_of(built, tick)
        if built.optimizer is not optimizer:
            raise ScheduleError(
                f"this {type(built).__name__} drives a different optimizer than the step's: "
                "build it with the optimizer that you give to Step; for several optimizers give "
                "schedule=[...], one each"
            )
        return built

    name = type(scheduler).__name__ if isinstance(scheduler, LRScheduler) else "from_torch"
    return Schedule(name, tick, build, (monitor or "val_loss") if tick == "metric" else None)


def _check_torch_scheduler(scheduler: Any) -> None:
    if isinstance(scheduler, LRScheduler):
        return
    if isinstance(scheduler, Schedule):
        raise ConfigError(
            f"the schedule {scheduler.name!r} is trueloop's own: give it to Step itself, "
            "schedule=..., without from_torch"
        )
    if isinstance(scheduler, type) and issubclass(scheduler, LRScheduler):
        name = scheduler.__name__
        if not _options.takes(scheduler, 1):
            raise ConfigError(
                f"from_torch was given the class {name}: write {name}(optimizer, ...), or "
                f"lambda optimizer: {name}(optimizer, ...)"
            )
        return
    _options.function(
        "scheduler", scheduler, "optimizer", "from_torch(StepLR(optimizer, 30), tick='epoch')"
    )


def _check_tick_of(scheduler: LRScheduler, tick: Any) -> None:
    watches = isinstance(scheduler, ReduceLROnPlateau)
    if tick in ("update", "epoch", "metric") and watches != (tick == "metric"):
        right = "metric" if watches else "update' or 'epoch"
        raise ScheduleError(
            f"{type(scheduler).__name__} cannot tick per {tick}: write tick='{right}'"
        )
