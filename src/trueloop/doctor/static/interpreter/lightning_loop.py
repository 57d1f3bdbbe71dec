"""Lightning's own loop around a module of the user's.

A `LightningModule` trains in code that is not there to be read: the Trainer calls `training_step`
for each batch, and what `configure_optimizers` returns says which optimizer and schedule step when.
Here the same calls are made, so that rules see the training that the methods are parts of.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from trueloop.doctor.model.events import BatchFetched, ModeSet, SchedulerStep
from trueloop.doctor.model.things import Loop, Model, Optimizer, Scheduler, Tensor
from trueloop.doctor.static.interpreter.calls import start
from trueloop.doctor.static.interpreter.framework_loops import (
    TURNS,
    Looping,
    method,
    most_arguments,
    turns,
)
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    Constant,
    DictValue,
    Function,
    LibraryName,
    Scope,
    Sequence,
    Unknown,
    Value,
)

BY = "Lightning"
_MODULE = re.compile(r"lightning(\.pytorch)?(\.core)?(\.(module|lightning))?\.LightningModule")
_OVERRIDDEN = frozenset(
    "backward optimizer_step optimizer_zero_grad lr_scheduler_step on_fit_start".split()
)
"""Methods with which a class changes how it is trained."""
_AROUND_BATCH = ("on_train_batch_start", "on_train_batch_end")
_AROUND_EPOCH = ("on_train_epoch_start", "on_train_epoch_end")
_STEP_ARGUMENTS = ("batch", "batch_idx", "batch_nb", "batch_index", "dataloader_idx", "_")


class Clock(NamedTuple):
    """A schedule, and when Lightning steps it."""

    scheduler: Scheduler
    interval: str
    """`epoch`, `step`, or empty where that is not known."""
    monitor: str = ""
    """The metric that a `ReduceLROnPlateau` gets."""


@dataclass
class ConfiguredOptimizers:
    """The outcome of `configure_optimizers`."""

    optimizers: list[Optimizer] = field(default_factory=list)
    clocks: list[Clock] = field(default_factory=list)
    known: bool = True
    """Nothing else was returned."""


@dataclass
class Fit:
    """One `trainer.fit(module)`."""

    cls: Class
    made: Model
    step: Function
    plan: ConfiguredOptimizers
    automatic: bool

    def hook(self, m: Interpreter, name: str, *args: Value) -> None:
        """Call a hook, where the class has it."""
        found = self.cls.lookup(name)
        if isinstance(found, Function):
            start(m, found, [self.made, *args[: most_arguments(found, True)]], {}, found.node)


def training_steps(node: ast.ClassDef) -> list[ast.stmt]:
    """The `training_step` of a class, if it has one."""
    return [each for each in node.body if getattr(each, "name", "") == "training_step"][:1]


def is_lightning_module(cls: Class) -> bool:
    """A class that trains with Lightning's Trainer, and whose bases are all known."""
    bases = cls.dotted_bases()
    unknown = [each for each in cls.lineage() if not isinstance(each, (Class, LibraryName))]
    return (
        not unknown
        and any(_MODULE.fullmatch(base) for base in bases)
        and all(_MODULE.fullmatch(base) or base in ("abc.ABC", "object") for base in bases)
        and all(isinstance(cls.lookup(name), Function) for name in _TRAINING)
        and not any(cls.lookup(name) for name in _OVERRIDDEN)
    )


_TRAINING = ("training_step", "configure_optimizers")


def train(m: Interpreter, cls: Class, made: Model) -> None:
    """Do what `trainer.fit(module)` does, with an object as its `__init__` has left it."""
    step, configure = cls.lookup("training_step"), cls.lookup("configure_optimizers")
    assert isinstance(step, Function)
    assert isinstance(configure, Function)
    automatic = _is_automatic(cls, made)
    plan = _plan(start(m, configure, [made], {}, configure.node))
    if automatic is None or not plan.known or not _is_plain(step):
        return
    if automatic and len(plan.optimizers) != 1:
        return
    if not automatic:
        made.attributes["optimizers"] = _giving(plan.optimizers, configure)
        made.attributes["lr_schedulers"] = _giving(
            [clock.scheduler for clock in plan.clocks], configure
        )
    made.training = True
    for clock in plan.clocks:
        clock.scheduler.stepped_by = BY
        if _steps_elsewhere(cls, clock, automatic):
            clock.scheduler.exposed = True
    _fit(m, Fit(cls, made, step, plan, automatic))


def _steps_elsewhere(cls: Class, clock: Clock, automatic: bool) -> bool:
    """A schedule may step at times that the few turns here do not show."""
    if automatic:
        return clock.interval not in ("epoch", "step")
    contents = cls.module.survey.contents.values()
    return any(name.startswith("lr_scheduler") for each in contents for name in each.names)


def _is_automatic(cls: Class, made: Model) -> bool | None:
    """Lightning updates by itself; None where that is not known."""
    found = made.attributes.get("automatic_optimization")
    if found is None:
        found = cls.lookup("automatic_optimization")
    if found is None:
        # A subclass, or a method that was not run, may switch it off.
        used = [cls.module.survey.contents.get(id(each)) for each in cls.node.body]
        names = {name for contents in used if contents is not None for name in contents.names}
        return True if names.isdisjoint(("manual_backward", "optimizers")) else None
    return bool(found.value) if isinstance(found, Constant) else None


def _fit(m: Interpreter, run: Fit) -> None:
    """A few epochs of a few batches, with a validation after each; then a test."""
    node = run.step.node
    epochs = Loop(place=m.place(node), kind="epochs", simulated=TURNS, framework=BY)
    run.hook(m, "on_train_start")
    with Looping(m, epochs, node):
        for _ in turns(m, epochs):
            run.hook(m, _AROUND_EPOCH[0])
            _train_epoch(m, run)
            _evaluate(m, run, "validation")
            run.hook(m, _AROUND_EPOCH[1])
            if run.automatic:
                _tick(m, run.plan, "epoch")
    _evaluate(m, run, "test")


def _train_epoch(m: Interpreter, run: Fit) -> None:
    step, node = run.step, run.step.node
    batches = Loop(place=m.place(node), kind="batches", simulated=TURNS, framework=BY)
    with Looping(m, batches, node):
        for index in turns(m, batches):
            batch, number = _batch(m, batches, index, node)
            run.hook(m, _AROUND_BATCH[0], batch, number)
            found = start(m, step, [run.made, batch, number][: _arguments(step)], {}, node)
            if run.automatic:
                _update(m, node, run.plan, found)
            run.hook(m, _AROUND_BATCH[1], found, batch, number)


def _batch(m: Interpreter, loop: Loop, index: int, node: ast.AST) -> tuple[Value, Value]:
    """A batch as a loader yields it, and its number."""
    batch = Tensor(role="batch", graph=False, made=m.place(node))
    m.emit(BatchFetched, node, loop=loop, loader=None, batch=batch)
    return batch, Constant(index, loop_variant=loop)


def _evaluate(m: Interpreter, run: Fit, what: str) -> None:
    """A loop over `validation_step` or `test_step`: without a graph, in eval mode, and each module
    gets its own mode back after it."""
    step = run.cls.lookup(f"{what}_step")
    if not isinstance(step, Function) or step.decorators:
        return
    node, made = step.node, run.made
    modes = [(each, each.training) for each in made.family()]
    m.grad.append(False)
    method(m, made, "eval", node)
    loop = Loop(place=m.place(node), kind="batches", simulated=TURNS - 1, framework=BY)
    loop.over = f"{what}_dataloader"
    try:
        run.hook(m, f"on_{what}_start")
        run.hook(m, f"on_{what}_epoch_start")
        with Looping(m, loop, node):
            for index in turns(m, loop):
                batch, number = _batch(m, loop, index, node)
                run.hook(m, f"on_{what}_batch_start", batch, number)
                args = [made, batch, number, Constant(0)]
                most = most_arguments(step, True)
                found = start(m, step, args if most is None else args[: most + 1], {}, node)
                run.hook(m, f"on_{what}_batch_end", found, batch, number)
        run.hook(m, f"on_{what}_epoch_end")
        run.hook(m, f"on_{what}_end")
    finally:
        m.grad.pop()
    method(m, made, "train", node)
    for each, training in modes:
        if training is False:
            m.emit(ModeSet, node, model=each, training=False)
        each.training = training


def _update(m: Interpreter, node: ast.AST, plan: ConfiguredOptimizers, found: Value) -> None:
    """Lightning's own update: the loss is what `training_step` returns."""
    loss = found.entries.get("loss") if isinstance(found, DictValue) else found
    if not isinstance(loss, Tensor):
        return  # the batch is skipped, or nothing is known
    (optimizer,) = plan.optimizers
    for receiver, name in ((optimizer, "zero_grad"), (loss, "backward"), (optimizer, "step")):
        method(m, receiver, name, node)
    _tick(m, plan, "step")


def _tick(m: Interpreter, plan: ConfiguredOptimizers, interval: str) -> None:
    """Step the schedules whose time it is. The place is where each was created."""
    for clock in plan.clocks:
        if clock.interval == interval:
            metric = Unknown(clock.monitor) if clock.monitor else None
            name = re.sub(r"\W", "_", clock.monitor)
            m.emit(
                SchedulerStep,
                clock.scheduler.made,
                scheduler=clock.scheduler,
                metric=metric,
                metric_name=name,
            )


def _is_plain(step: Function) -> bool:
    """`training_step(self, batch, batch_idx)`: with one optimizer, and no arguments of old."""
    spec = step.node.args
    names = [each.arg for each in spec.args[2:]]
    return not step.decorators and set(names) <= {*_STEP_ARGUMENTS} and not spec.kwonlyargs


def _arguments(step: Function) -> int:
    return min(3, len(step.node.args.args))


# ------------------------------------------------------------------------------- the optimizers


def _plan(found: Value) -> ConfiguredOptimizers:
    """An optimizer; a list of them; optimizers and schedules; a dict of both."""
    plan = ConfiguredOptimizers()
    if isinstance(found, Sequence) and not found.open:
        lists = [each for each in found.values if isinstance(each, Sequence) and not each.open]
        if len(found.values) == len(lists) == 2:
            _take_optimizers(plan, lists[0].values)
            for each in lists[1].values:
                _take_schedule(plan, each)
            return plan
        if all(isinstance(each, DictValue) for each in found.values):
            for each in found.values:
                assert isinstance(each, DictValue)
                _take_dict(plan, each)
            return plan
        _take_optimizers(plan, found.values)
        return plan
    if isinstance(found, DictValue):
        _take_dict(plan, found)
    else:
        _take_optimizers(plan, [found])
    return plan


def _take_optimizers(plan: ConfiguredOptimizers, values: list[Value]) -> None:
    for each in values:
        if isinstance(each, Optimizer):
            plan.optimizers.append(each)
        else:
            plan.known = False


def _take_dict(plan: ConfiguredOptimizers, found: DictValue) -> None:
    _take_optimizers(plan, [found.entries.get("optimizer", NONE)])
    if found.open:
        plan.known = False
    if "lr_scheduler" in found.entries:
        _take_schedule(plan, found.entries["lr_scheduler"], found)


def _take_schedule(
    plan: ConfiguredOptimizers, found: Value, around: DictValue | None = None
) -> None:
    """A schedule, or a dict with its settings. Its monitor may be a key of the dict around it."""
    if isinstance(found, Scheduler):
        plan.clocks.append(Clock(found, "epoch", _text(around, "monitor")))
        return
    scheduler = found.entries.get("scheduler") if isinstance(found, DictValue) else None
    if not isinstance(found, DictValue) or not isinstance(scheduler, Scheduler):
        plan.known = False
        return
    known = not found.open and found.entries.get("frequency", Constant(1)) == Constant(1)
    known = known or _number(found, "frequency") in (None, 1)
    interval = found.entries.get("interval", Constant("epoch"))
    when = interval.value if isinstance(interval, Constant) and not found.open else ""
    monitor = _text(found, "monitor") or _text(around, "monitor")
    plan.clocks.append(Clock(scheduler, str(when) if known else "", monitor))


def _number(found: DictValue, key: str) -> object:
    value = found.entries.get(key)
    return value.value if isinstance(value, Constant) else value


def _text(found: DictValue | None, key: str) -> str:
    value = found.entries.get(key) if found is not None else None
    return value.value if isinstance(value, Constant) and isinstance(value.value, str) else ""


_LAMBDA = ast.parse("lambda *args, **kwargs: given", mode="eval").body


def _giving(values: list[Optimizer] | list[Scheduler], near: Function) -> Function:
    """`self.optimizers()` and `self.lr_schedulers()`: one, or a list of several."""
    assert isinstance(_LAMBDA, ast.Lambda)
    scope = Scope(near.module)
    scope.variables["given"] = (
        values[0] if len(values) == 1 else Sequence("list", [*values]) if values else NONE
    )
    return Function(_LAMBDA, scope, near.module, "optimizers")
