"""The evidence of a run: does a schedule step per batch or per epoch?

The rules on schedules ask the same questions: in which loops does it step, how long are these, how
long is the schedule. Here they are answered once.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from trueloop.doctor.model.events import Backward, Ended, Event, Made, OptimizerStep, SchedulerStep
from trueloop.doctor.model.things import Loop, Scheduler, Turn
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared import symbolic

ENOUGH = 200
"""Events of a kind that are kept: what a loop does shows in its first turns."""
_LENGTHS = {
    "CosineAnnealingLR": "T_max",
    "PolynomialLR": "total_iters",
    "LinearLR": "total_iters",
    "ConstantLR": "total_iters",
    "get_linear_schedule_with_warmup": "num_training_steps",
    "get_cosine_schedule_with_warmup": "num_training_steps",
    "get_cosine_with_hard_restarts_schedule_with_warmup": "num_training_steps",
    "get_polynomial_decay_schedule_with_warmup": "num_training_steps",
    "get_scheduler": "num_training_steps",
    "LambdaLR": "lr_lambda",
    "WarmupLinearSchedule": "num_training_steps",
    "WarmupCosineSchedule": "num_training_steps",
}
"""Kind of schedule -> the argument that says how long it is; of a function, the step at which it
ends (in source)."""


class Length(NamedTuple):
    """How long a schedule is, in calls of `scheduler.step()`."""

    calls: symbolic.Sum
    written: str
    """As the source has it: `T_max=args.epochs`."""


def length_of(scheduler: Scheduler) -> Length | None:
    """The number of `step()` calls that a schedule is made for; None if it has no known length."""
    arguments, written = scheduler.arguments, scheduler.written
    name = _LENGTHS.get(scheduler.kind, "")
    if scheduler.kind == "OneCycleLR":
        name = "total_steps"
        if arguments.get(name) is None:
            epochs = symbolic.parse(arguments.get("epochs"))
            steps = symbolic.parse(arguments.get("steps_per_epoch"))
            if epochs is None or steps is None:
                return None
            words = (f"{each}={written.get(each, '…')}" for each in ("epochs", "steps_per_epoch"))
            return Length(symbolic.times(epochs, steps), ", ".join(words))
    if scheduler.kind == "SequentialLR":
        return _length_of_sequence(scheduler)
    found = symbolic.parse(arguments.get(name))
    if found is None:
        return None
    if name == "lr_lambda":
        return Length(found, _named(written[name], symbolic.number(found)))
    return Length(found, f"{name}={written.get(name) or arguments.get(name)}")


def _named(name: str, number: float | None) -> str:
    return f"{name}={number:g}" if number is not None and name.isidentifier() else name


def _length_of_sequence(scheduler: Scheduler) -> Length | None:
    """Up to the last milestone, then the length of the last schedule."""
    milestones, inner = scheduler.arguments.get("milestones"), scheduler.schedules
    last = length_of(inner[-1]) if inner else None
    begin = symbolic.parse(milestones[-1]) if milestones else None
    if last is None or begin is None:
        return None
    return Length(symbolic.added(begin, last.calls), last.written)


@dataclass(eq=False)
class ScheduleClock:
    """A schedule, and what was seen of it and of its optimizer."""

    scheduler: Scheduler
    made: Made | None = None
    calls: list[SchedulerStep] = field(default_factory=list)
    steps: list[OptimizerStep] = field(default_factory=list)
    """Of its optimizer, since it was made."""
    driven: bool = False
    """A different schedule steps it: it is a part of a `SequentialLR` or `ChainedScheduler`."""

    def own(self, event: Event) -> tuple[Turn, ...]:
        """The turns that contain an event, of loops entered since the schedule was made."""
        outer = {turn.loop for turn in self.made.turns} if self.made is not None else set()
        return tuple(turn for turn in event.turns if turn.loop not in outer)

    def batch_loop(self, event: Event) -> Loop | None:
        """The loop over batches that an event happens in, once a turn."""
        loops = [turn.loop for turn in self.own(event) if turn.loop.kind == "batches"]
        return loops[-1] if loops else None

    def epoch_turns(self, event: Event) -> list[Turn]:
        """The turns of loops over epochs (and over what surrounds these), outermost first."""
        return [turn for turn in self.own(event) if turn.loop.kind == "epochs"]

    def free(self, event: Event) -> bool:
        """Nothing but what made the schedule, or what its optimizer's steps depend on as well, can
        keep this from happening."""
        allowed = self.made.guards if self.made is not None else frozenset()
        if self.steps:
            allowed |= frozenset.intersection(*(step.guards for step in self.steps))
        return event.guards <= allowed

    def plain(self) -> list[SchedulerStep]:
        """Ticks that count for themselves: with no epoch or metric, under no condition."""
        return [call for call in self.calls if call.metric is None and self.free(call)]

    def per_batch(self) -> list[SchedulerStep]:
        return [call for call in self.plain() if self.batch_loop(call) is not None]

    def now_and_then(self, ticks: list[SchedulerStep]) -> bool:
        """Ticks do not come with each update: `if step % 1000 == 0: scheduler.step()`."""
        sizes = [{each.size for each in step.windows} for step in self.steps]
        own = {each.size for tick in ticks for each in tick.windows}
        if sizes and not own <= set.intersection(*sizes):
            return True
        updated, ticked = self._batches(self.steps), self._batches(ticks)
        return 2 * len(updated & ticked) < len(updated)

    def _batches(self, events: Iterable[Event]) -> set[tuple[Loop, int]]:
        """The turns of loops over batches that have one of these events."""
        turns = (turn for event in events for turn in self.own(event))
        return {(turn.loop, turn.index) for turn in turns if turn.loop.kind == "batches"}

    def per_epoch(self) -> list[SchedulerStep]:
        """Ticks in a loop over epochs and outside of those over batches."""
        return [
            call
            for call in self.plain()
            if self.batch_loop(call) is None and self.epoch_turns(call)
        ]

    def twice(self) -> tuple[SchedulerStep, SchedulerStep] | None:
        """It steps both per batch and per epoch, in the same epochs: one call of each."""
        batches: dict[tuple[Loop, int], SchedulerStep] = {}
        for call in self.per_batch():
            for turn in self.epoch_turns(call):
                batches.setdefault((turn.loop, turn.index), call)
        both: dict[Loop, list[tuple[SchedulerStep, SchedulerStep]]] = defaultdict(list)
        for call in self.per_epoch():
            innermost = self.epoch_turns(call)[-1]
            inside = batches.get((innermost.loop, innermost.index))
            if inside is None or call.guards != inside.guards:
                continue
            if not self._follows_an_update(call):
                both[innermost.loop].append((inside, call))
        for loop, pairs in both.items():
            if len(pairs) > 1 or loop.turns == 1:
                return pairs[0]
        return None

    def _follows_an_update(self, call: SchedulerStep) -> bool:
        """The last thing before it is a step of the optimizer at the same level: what is left of
        an accumulation is applied after the loop, and counts as an update like any other."""
        earlier = [step for step in self.steps if step.serial < call.serial]
        return bool(earlier) and earlier[-1].turns == call.turns

    def without_update(self, unseen: list[int]) -> tuple[SchedulerStep, SchedulerStep] | None:
        """It steps twice in one turn with no update of its optimizer in between, turn after turn:
        both calls. `unseen`: serial numbers of moments when an update may have been missed."""
        updates = sorted([*(step.serial for step in self.steps), *unseen])
        last = self.steps[-1].serial if len(self.steps) >= ENOUGH else math.inf
        pairs: dict[Loop, list[tuple[SchedulerStep, SchedulerStep]]] = defaultdict(list)
        for one, two in itertools.pairwise(self.calls):
            outermost = self._loop_around(one, two)
            if outermost is None or two.serial > last or not self.steps:
                continue
            # A gap in what is seen ends at the call: it has the call's own number.
            first_after = bisect.bisect_left(updates, one.serial)
            if first_after == len(updates) or updates[first_after] > two.serial:
                pairs[outermost].append((one, two))
        return next((found[0] for found in pairs.values() if len(found) > 1), None)

    def _loop_around(self, one: SchedulerStep, two: SchedulerStep) -> Loop | None:
        """The outermost loop of two calls made for the same reason: two statements in one turn, or
        the same one in two phases of which only one updates."""
        mine, yours = self.own(one), self.own(two)
        by_metric = self.scheduler.kind == "ReduceLROnPlateau"
        if (one.metric is not None or two.metric is not None) and not by_metric:
            return None  # an epoch number sets the schedule: it does not add up
        if one.metric_name != two.metric_name or not (self.free(one) and self.free(two)):
            return None
        if (one.guards, one.windows) != (two.guards, two.windows) or len(mine) != len(yours):
            return None
        if not mine or not any(
            mine[-1] in step.turns and step.serial < one.serial for step in self.steps
        ):
            return None  # the updates of this turn were not seen
        if one.place != two.place:
            return mine[0].loop if mine == yours else None
        if len(mine) < 2 or mine[:-1] != yours[:-1] or mine[-1].loop is not yours[-1].loop:
            return None
        phases = mine[-1].loop
        updates = any(turn.loop is phases for step in self.steps for turn in step.turns)
        return mine[0].loop if updates and self.batch_loop(one) is None else None


def epochs_of(turns: list[Turn]) -> list[symbolic.Sum]:
    """The possible numbers of epochs: how often the loops around the batches turn."""
    return [found for turn in turns for found in symbolic.range_of(turn.loop.turns)]


def passes_of(clock: ScheduleClock, call: SchedulerStep) -> list[symbolic.Sum]:
    """The possible numbers of epochs; where they are divided into phases, of all phases together
    too: `for stage in (0, 1, 2): for _ in range(4): ...` makes 12."""
    found = epochs_of(clock.epoch_turns(call))
    own = clock.own(call)
    last = max(
        (at for at, turn in enumerate(own, start=1) if turn.loop.kind == "epochs"), default=0
    )
    around = [turn.loop for turn in own[:last]]
    counts = [symbolic.number(symbolic.parse(each.turns)) for each in around]
    total: symbolic.Sum = {(): math.prod((each for each in counts if each is not None), start=1.0)}
    return [*found, total] if len(counts) > 1 and None not in counts else found


def batches_of(loop: Loop) -> symbolic.Sum | None:
    """Batches in an epoch."""
    found = symbolic.parse(loop.turns)
    if found is None and loop.loader is not None:
        found = symbolic.parse(loop.loader.length)
        if found is None and loop.loader.name:
            found = symbolic.parse(f"len({loop.loader.name})")
    return found


_INTERVALS = {
    ("Lightning", "batch"): 'Return it with "interval": "step"',
    ("Lightning", "epoch"): 'Return it with "interval": "epoch"',
    ("Ignite", "batch"): "Attach it to `Events.ITERATION_COMPLETED`",
    ("Ignite", "epoch"): "Attach it to `Events.EPOCH_COMPLETED`",
}


def where_to_step(scheduler: Scheduler, per: Literal["batch", "epoch"]) -> str:
    """The beginning of a remedy: where a schedule should step instead, or nothing where its
    framework leaves no choice."""
    if scheduler.stepped_by:
        found = _INTERVALS.get((scheduler.stepped_by, per))
        return f"{found}, or give" if found is not None else "Give"
    when = "after every `optimizer.step()`"
    if per == "epoch":
        when = "once per epoch, after the loop over batches"
    return f"Call `scheduler.step()` {when}, or give"


class ScheduleRule(Rule):
    """A rule that judges each schedule once the run is over."""

    def __init__(self) -> None:
        super().__init__()
        self.clocks: dict[Scheduler, ScheduleClock] = {}
        self.steps: list[OptimizerStep] = []
        """Of all optimizers."""
        self.backwards: list[Backward] = []
        self.whole_program = False
        """The run was a whole program: no number is just the default of a function's argument."""
        self.updates: int | None = None
        """Of all optimizers, in a program that ran."""

    def clock(self, scheduler: Scheduler) -> ScheduleClock:
        return self.clocks.setdefault(scheduler, ScheduleClock(scheduler))

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Scheduler):
            self.clock(event.thing).made = event
            for inner in event.thing.schedules:
                self.clock(inner).driven = not event.thing.own_step

    def on_scheduler_step(self, event: SchedulerStep) -> None:
        calls = self.clock(event.scheduler).calls
        if len(calls) < ENOUGH:
            calls.append(event)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        for clock in self.clocks.values():
            if clock.scheduler.optimizer is event.optimizer and len(clock.steps) < ENOUGH:
                clock.steps.append(event)
        if len(self.steps) < ENOUGH:
            self.steps.append(event)

    def on_backward(self, event: Backward) -> None:
        if len(self.backwards) < ENOUGH:
            self.backwards.append(event)

    def on_ended(self, event: Ended) -> None:
        self.whole_program, self.updates = event.whole_program, event.updates
        for clock in self.clocks.values():
            if not (clock.driven or clock.scheduler.only_drawn):
                self.check(clock)

    def check(self, clock: ScheduleClock) -> None:
        raise NotImplementedError


def called(scheduler: Scheduler) -> str:
    """The name of a schedule in a message."""
    return f"`{scheduler.name or scheduler.kind or 'the scheduler'}`"
