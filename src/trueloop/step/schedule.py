"""How a schedule is described, built and ticked; the schedules themselves are `trueloop.schedules`.

A schedule is described first and built when the optimizer and the length of the run are known
(`Step.plan`, which `fit` calls): the clocks are `update` (ticks after each real update), `epoch`
and `metric` (ticks at the end of an epoch).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from trueloop import _options
from trueloop.errors import ConfigError, ScheduleError
from trueloop.lengths import parse_amount
from trueloop.records import EvalRecord, direction as direction_of, names_like

Length = int | float | str
Scores = EvalRecord | Mapping[str, float] | float

TICKS = ("update", "epoch", "metric")


@dataclass(frozen=True)
class Plan:
    """How long a run is.

    Attributes:
        epochs: passes over the training data; None for a run whose length is not given in them.
        updates_per_epoch: optimizer updates in each; None when the data has no length.
        batches: micro-batches in each; None when the data has no length.
        updates: optimizer updates in the whole run; None for a run whose length is in epochs, or
            in tokens of which nobody knows how many an update has.
    """

    epochs: int | None
    updates_per_epoch: int | None
    batches: int | None = None
    updates: int | None = None

    @classmethod
    def of(
        cls, epochs: int | None, updates: int | None, batches: int | None, accumulate: int
    ) -> Plan:
        """The plan of a run, from what `Step.plan` takes.

        Args:
            epochs: passes over the data.
            updates: optimizer updates, in place of `epochs`.
            batches: micro-batches in each epoch; None: unknown.
            accumulate: micro-batches of an update.

        Returns:
            The plan.

        Raises:
            ConfigError: a number below 1, or both lengths at once.
        """
        given = {"epochs": epochs, "updates": updates, "batches": batches}
        for name, number in given.items():
            if number is not None:
                _options.whole(name, number)
        if epochs is not None and updates is not None:
            raise ConfigError(
                f"epochs={epochs} and updates={updates} both say how long the run is: write one "
                "of them"
            )
        per_epoch = None if batches is None else -(-batches // accumulate)
        return cls(epochs, per_epoch, batches, updates)

    def ticks(self, clock: str) -> int | None:
        """How often a clock ticks in the whole run.

        Args:
            clock: `update`, `epoch` or `metric`.

        Returns:
            The number of ticks; None where it is not known.
        """
        per_epoch = self.updates_per_epoch
        if clock == "update":
            if self.epochs is None or per_epoch is None:
                return self.updates
            return self.epochs * per_epoch
        if self.updates is None or per_epoch is None:
            return self.epochs
        return self.updates // per_epoch


@dataclass(frozen=True)
class Schedule:
    """A schedule described but not built: see `trueloop.schedules`.

    Attributes:
        name: name of the function that made it.
        tick: its clock: `update`, `epoch` or `metric`.
        build: `build(optimizer, resolver)` returns torch's scheduler; the resolver turns lengths
            into ticks.
        monitor: for the `metric` clock: the score it watches.
    """

    name: str
    tick: str
    build: Callable[[Optimizer, Resolver], LRScheduler]
    monitor: str | None = None

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
            raise ScheduleError(self._why_unknown())
        if total == 0:
            raise ScheduleError(
                f"the schedule ticks per {self.clock}, and the run of {self.plan.updates} updates "
                "ends before its first epoch does: write tick='update'"
            )
        return total

    def _why_unknown(self) -> str:
        """Why the ticks of the whole run are not known, and what to write."""
        assert self.plan is not None
        if self.clock != "update":
            return (
                "the schedule ticks per epoch, and how many epochs the run has is not known: give "
                "the schedule's length in epochs, or write tick='update'"
            )
        remedy = "give the schedule's length in updates, e.g. cosine(10_000)"
        if self.plan.epochs is not None:
            return (
                "the training data has no length, so neither has the schedule: "
                f"{remedy}, or the run's: updates=10_000"
            )
        return (
            "the run's length is in tokens, and the training data does not say how many of them "
            f"an update has: {remedy}"
        )

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
                f"{length!r} is not a whole number of epochs of {per_epoch} updates, and the "
                "schedule ticks per epoch: give its length in epochs, or write tick='update'"
            )
        return int(amount) // per_epoch


def _unplanned(length: Length | None) -> ScheduleError:
    what = "the whole run" if length is None else repr(length)
    return ScheduleError(
        f"the schedule's length is {what}, but the length of the run is not known: call "
        "step.plan(epochs=…, batches=len(train)) before the first batch, or give it in updates"
    )


def parse_length(length: Length) -> tuple[float, str]:
    """Split a length into its amount and its unit.

    Args:
        length: an int (ticks), a float in [0, 1] or "5%" (a share), "20 epochs" or "300 updates".

    Returns:
        (amount, unit): the unit is `ticks`, `share` (the amount then is from 0 to 1), `epochs` or
        `updates`.

    Raises:
        ConfigError: it is not a length.
    """
    amount, unit = math.nan, ""
    if isinstance(length, bool):
        pass
    elif isinstance(length, int):
        amount, unit = length, "ticks"
    elif isinstance(length, float):
        amount, unit = length, "share"
    elif isinstance(length, str):
        amount, unit = parse_amount(length) or (math.nan, "")
        if length.strip().isdecimal():
            number = length.strip()
            raise ConfigError(
                f"length {length!r}: {number} of what? write '{number} epochs', "
                f"'{number} updates' or '{number}%'"
            )
    whole = unit in ("ticks", "updates")
    fits = math.isfinite(amount) and amount >= 0 and not (whole and amount % 1)
    known = unit in ("ticks", "share", "epochs", "updates")
    if not known or not fits or (unit == "share" and amount > 1):
        raise ConfigError(
            f"length {length!r} is not understood: write an int (ticks), '5%' (a share of the "
            "run), '20 epochs' or '300 updates'"
        )
    return amount, unit


def check_length(option: str, length: Any, *, zero: bool = False) -> None:
    """Raise `ConfigError` for what is not a length, or for 0 unless `zero` allows it."""
    if length is None and not zero:
        return
    if isinstance(length, Optimizer):
        raise ConfigError(
            f"{option} is {_options.kind_of(length)}: a schedule is described without the "
            "optimizer, write e.g. cosine(), and Step(..., schedule=cosine()) gives it its own"
        )
    if not isinstance(length, (int, float, str)):
        raise ConfigError(
            f"{option}={_options.shown(length)} is not a length: write an int (ticks), '5%' (a "
            "share of the run), '20 epochs' or '300 updates'"
        )
    amount, _ = parse_length(length)
    if amount == 0 and not zero:
        raise ConfigError(
            f"{option}={length!r} must be above 0: write e.g. {option}='300 updates', or leave it "
            "out"
        )


def resolve_mode(monitor: str, mode: str) -> Literal["min", "max"]:
    """Whether a score should fall or rise.

    Args:
        monitor: the score's name, such as `val_loss`; its last words decide.
        mode: `min` or `max`, which is returned; or `auto`, by the name.

    Returns:
        `min` or `max`.

    Raises:
        ConfigError: the name does not say which, or `mode` is unknown.
    """
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
