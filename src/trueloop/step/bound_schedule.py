"""A schedule built for an optimizer: it is stepped on its own clock, checked against the run's
length, and keeps its last value at its end."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.optim import Optimizer, lr_scheduler as torch_schedulers
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from trueloop import _options, device as devices
from trueloop.errors import ConfigError, ScheduleError
from trueloop.records import EvalRecord, monitored
from trueloop.step.loading import load_scheduler
from trueloop.step.schedule import Plan, Resolver, Schedule, Scores
from trueloop.step.warmup_stable_decay import WarmupStableDecay


class BoundSchedule:
    """A built schedule that ticks on its own clock and on no other, and not past its end.

    Torch's schedulers are functions of time without an end: after its length a cosine rises again.
    Here the learning rate keeps its last value, with one warning.
    """

    def __init__(
        self, schedule: Schedule, optimizer: Optimizer, plan: Plan | None, speaks: bool = True
    ) -> None:
        self.schedule = schedule
        self._speaks = speaks
        """Whether it warns of its end: of one schedule for several optimizers the first does."""
        self.scheduler = schedule.build(optimizer, Resolver(schedule.tick, plan))
        self._run: int | None = None if plan is None else plan.ticks(schedule.tick)
        self._end = self._find_end()
        self._held = 0
        """Ticks after the end, at which the last value was kept."""

    def _find_end(self) -> int | None:
        """The number of ticks after which the schedule is over; None if it never is."""
        if isinstance(self.scheduler, torch_schedulers.CosineAnnealingWarmRestarts):
            length = self._run  # it is periodic: only a planned run gives it an end
        elif isinstance(self.scheduler, torch_schedulers.MultiStepLR):
            length = None  # constant after its last milestone
        else:
            length = _length(self.scheduler)
        return None if length is None else length - _is_past_its_lowest(self.scheduler)

    def check(self, plan: Plan, *, saved: bool = False) -> None:
        """Raise `ScheduleError` unless the schedule ends where the run ends (to one tick).

        `saved`: its length comes from a checkpoint, which changes the remedy.
        """
        self._run = run = plan.ticks(self.schedule.tick)
        self._end = self._find_end()
        own = _length(self.scheduler)
        if run is None or own is None:
            return
        unit = f"{self.schedule.tick}s"
        if isinstance(self.scheduler, torch_schedulers.CosineAnnealingWarmRestarts):
            _check_restarts(self.scheduler, run, unit)
        elif isinstance(self.scheduler, torch_schedulers.MultiStepLR):
            if own >= run:
                raise ScheduleError(
                    f"the schedule's step at {unit[:-1]} {own} is beyond the run of {run} "
                    f"{unit}: move it forward, or give it as a share such as '75%'"
                )
        elif abs(own - run) > 1 or (own < run and _ends_for_good(self.scheduler)):
            remedy = "leave the length out (it is then the run's), or make the two agree"
            if saved:
                remedy = (
                    "continue with the length, batches and accumulation of the run that was saved"
                )
            raise ScheduleError(
                f"the schedule is {own} {unit} long, but the run makes {run}: {remedy}"
                + _micro_batch_hint(own, run)
            )

    def tick_metric(self, scores: Scores | None) -> None:
        if self.schedule.tick == "metric":
            assert isinstance(self.scheduler, ReduceLROnPlateau)
            assert self.schedule.monitor is not None
            self.scheduler.step(score(scores, self.schedule.monitor))

    def tick(self, clock: str, stacklevel: int) -> None:
        """Step on the clock `update` or `epoch`, if that is its own; a warning is about the frame
        `stacklevel` calls up."""
        if clock != self.schedule.tick:
            return
        scheduler = self.scheduler
        if self._end is not None and scheduler.last_epoch >= self._end:
            self._held += 1
            self._warn_of_end(self._end, stacklevel + 2)
            return
        is_sequence = isinstance(scheduler, torch_schedulers.SequentialLR)
        if not (is_sequence and scheduler.last_epoch + 1 in vars(scheduler)["_milestones"]):
            scheduler.step()
            return
        # Older torch warns here of a call of its own, which nobody else can change.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The epoch parameter", UserWarning)
            scheduler.step()

    def _warn_of_end(self, end: int, stacklevel: int) -> None:
        length = end + _is_past_its_lowest(self.scheduler)
        # A run that was planned may be one tick longer than its schedule (see `check`).
        allowed = max(length, min(self._run or 0, length + 1)) - end
        if self._held != allowed + 1 or not self._speaks:
            return
        lr = float(self.scheduler.optimizer.param_groups[0]["lr"])
        warnings.warn(
            f"the schedule {self.schedule.name!r} ended after {length} {self.schedule.tick}s, and "
            f"the training continues: the learning rate stays at {lr:.3g}. Give the schedule the "
            "length of the run, or end the run with it",
            UserWarning,
            stacklevel=stacklevel,
        )

    def state_dict(self) -> dict[str, Any]:
        return dict(self.scheduler.state_dict())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_scheduler(self.scheduler, state)
        self._end = self._find_end()


def check_scores(scores: Any) -> None:
    """Raise `ConfigError` for what cannot be an epoch's scores."""
    is_number = isinstance(scores, (int, float)) and not isinstance(scores, bool)
    if not is_number and not (scores is None or isinstance(scores, (EvalRecord, Mapping))):
        raise ConfigError(
            f"the scores of the epoch are {_options.shown(scores)}: give what evaluate() returned, "
            "a dict such as {'val_loss': 0.5}, or one number"
        )


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


def _is_past_its_lowest(scheduler: LRScheduler) -> bool:
    """Whether, after as many ticks as it is long, the scheduler has left its lowest value again."""
    restarts = torch_schedulers.CosineAnnealingWarmRestarts
    return isinstance(scheduler, (torch_schedulers.OneCycleLR, restarts))


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
    """How many ticks a scheduler is made for; None if torch does not say or it never ends."""
    s = torch_schedulers
    if isinstance(scheduler, WarmupStableDecay):
        return scheduler.length
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


def learning_rates(named: Sequence[tuple[str, Optimizer]]) -> dict[str, Any]:
    """The learning rate of each parameter group, by the group's `name` or else its number, after
    the prefix that `prefixed` gives the optimizer."""
    found = {}
    for prefix, optimizer in named:
        for number, group in enumerate(optimizer.param_groups):
            lr = group["lr"]
            name = f"{prefix}{group.get('name', number)}"
            found[name] = lr if type(lr) is float else _current(lr)
    return found


def prefixed(optimizers: Sequence[Optimizer]) -> list[tuple[str, Optimizer]]:
    """Each optimizer with what its groups' names begin with: nothing for a single one, else its
    class in small letters, such as `muon/`; of the same class the second is `adamw_2/`."""
    if len(optimizers) == 1:
        return [("", optimizers[0])]
    found: list[tuple[str, Optimizer]] = []
    seen: Counter[str] = Counter()
    for optimizer in optimizers:
        kind = type(optimizer).__name__.lower()
        seen[kind] += 1
        found.append((f"{kind}/" if seen[kind] == 1 else f"{kind}_{seen[kind]}/", optimizer))
    return found


def _current(lr: Any) -> Any:
    if not isinstance(lr, Tensor):
        return lr
    # The schedule writes into it: the record is of now.
    return lr.item() if devices.is_immediate(lr.device) else lr.detach().clone()
