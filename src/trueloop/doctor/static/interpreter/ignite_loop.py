"""Ignite's engines: a function of the user's, the loop around it, and its handlers.

`Engine(update).run(loader, max_epochs=10)` is where the training happens. An engine that is
made and handed out runs at the end, in a loop over data that is not known.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from trueloop.doctor.model.events import BatchFetched
from trueloop.doctor.model.things import Loop, Model, Optimizer, Scheduler, Size, Tensor
from trueloop.doctor.static.interpreter.calls import start
from trueloop.doctor.static.interpreter.framework_loops import (
    TURNS,
    Looping,
    method,
    most_arguments,
    turns,
)
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.loop_plans import plan
from trueloop.doctor.static.interpreter.unpacking import unpack
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Constant,
    Function,
    LibraryName,
    Method,
    OpaqueObject,
    Unknown,
    Value,
    constant,
)

BY = "Ignite"


@dataclass(eq=False, slots=True)
class SupervisedStep(Value):
    """Ignite's own update or evaluation of a batch: `supervised_training_step(...)`."""

    model: Value
    optimizer: Value | None
    """None: it evaluates, in eval mode and without a graph."""
    loss_fn: Value
    node: ast.AST


@dataclass(eq=False, slots=True)
class Handler(Value):
    """A function that is called at an event of an engine."""

    event: str
    """`EPOCH_COMPLETED`."""
    guard: str
    """The condition under which it is called (`every=100`); empty for always."""
    function: Value
    args: list[Value]
    kwargs: dict[str, Value]
    node: ast.AST


@dataclass(eq=False, slots=True)
class AttachedSchedule(OpaqueObject):
    """Ignite's `LRScheduler`, which steps a schedule of torch's when an event calls it."""

    schedule: Scheduler | None = None


@dataclass(eq=False, slots=True)
class EventDecorator(Value):
    """The result of `trainer.on(Events.EPOCH_COMPLETED)`."""

    engine: Engine
    event: Value
    args: list[Value]
    kwargs: dict[str, Value]
    node: ast.AST


@dataclass(eq=False, slots=True)
class Engine(OpaqueObject):
    """`ignite.engine.Engine`."""

    step: Value = NONE
    """Called for each batch, with the engine and the batch."""
    handlers: list[Handler] = field(default_factory=list)
    node: ast.AST = field(default_factory=ast.Pass)
    runs: int = 0
    running: bool = False

    def listen(
        self,
        m: Interpreter,
        event: Value,
        function: Value,
        args: list[Value],
        kwargs: dict[str, Value],
        node: ast.AST,
    ) -> None:
        """Call a function at an event, or at each of several (`Events.A | Events.B`)."""
        for name, guard in _events(m, event, node):
            self.handlers.append(Handler(name, guard, function, args, kwargs, node))


def _events(m: Interpreter, value: Value, node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(value, LibraryName):
        yield value.name.rpartition(".")[2], ""
    elif isinstance(value, OpaqueObject):
        name = value.kind.rpartition(".")[2]
        always = set(value.arguments) == {"every"} and constant(value.arguments["every"]) == 1
        yield name, "" if always else f"{name}@{m.place(node).line}"
    elif isinstance(value, Unknown):
        for part in value.of:
            yield from _events(m, part, node)


def run(
    m: Interpreter,
    engine: Engine,
    data: Value,
    epochs: Value,
    length: Value | None,
    node: ast.AST,
    over: str,
) -> None:
    """`engine.run(data, max_epochs=..., epoch_length=...)`."""
    if engine.running:
        return
    engine.running, engine.runs = True, engine.runs + 1
    state = Unknown("engine.state")
    state.attributes["dataloader"], state.attributes["max_epochs"] = data, epochs
    engine.attributes["state"] = state
    _fire(m, engine, "STARTED")
    if constant(epochs) == 1:
        _epoch(m, engine, state, data, length, node, over)
    else:
        known = constant(epochs)
        count = min(known, TURNS) if isinstance(known, int) else TURNS
        loop = Loop(
            place=m.place(node), kind="epochs", turns=m.size(epochs), simulated=count, framework=BY
        )
        with Looping(m, loop, node):
            for index in turns(m, loop):
                state.attributes["epoch"] = Constant(index + 1, loop_variant=loop)
                _epoch(m, engine, state, data, length, node, over)
    _fire(m, engine, "COMPLETED")
    engine.running = False


def _epoch(
    m: Interpreter,
    engine: Engine,
    state: Unknown,
    data: Value,
    length: Value | None,
    node: ast.AST,
    over: str,
) -> None:
    how = plan(m, data, node)
    loop = Loop(
        place=m.place(node), kind="batches", loader=how.loader, simulated=how.count, framework=BY
    )
    loop.turns, loop.over = _length(m, length, how.size), over
    _fire(m, engine, "EPOCH_STARTED")
    with Looping(m, loop, node):
        for index in turns(m, loop):
            batch = how.make(loop, index)
            state.attributes["batch"] = batch
            number = 1 + index + how.count * _turn_around(m)
            state.attributes["iteration"] = Constant(number, loop_variant=True)
            m.emit(BatchFetched, node, loop=loop, loader=how.loader, batch=batch)
            _fire(m, engine, "ITERATION_STARTED")
            state.attributes["output"] = _process(m, engine, batch)
            _fire(m, engine, "ITERATION_COMPLETED")
    _fire(m, engine, "EPOCH_COMPLETED")


def _length(m: Interpreter, given: Value | None, size: Size) -> Size:
    return size if given is None or constant(given, 0) is None else m.size(given)


def _turn_around(m: Interpreter) -> int:
    """The number of the epoch, in the middle of a turn over batches."""
    epochs = [turn.index for turn in m.turns if turn.loop.kind == "epochs"]
    return epochs[-1] if epochs else 0


def _process(m: Interpreter, engine: Engine, batch: Value) -> Value:
    step = engine.step
    if isinstance(step, SupervisedStep):
        return _supervised(m, step, batch)
    return _call(m, step, [engine, batch], {}, engine.node)


def _call(
    m: Interpreter, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """The user's function, as if called where it is defined: each call is read again."""
    if isinstance(function, Function):
        return start(m, function, args, kwargs, function.node)
    if isinstance(function, Method):
        inner = function.function
        return start(m, inner, [function.receiver, *args], kwargs, inner.node)
    return m.call_value(function, args, kwargs, node)


def _supervised(m: Interpreter, step: SupervisedStep, batch: Value) -> Value:
    """Ignite's own update, or its evaluation."""
    node = step.node
    inputs, targets = unpack(m, batch, 2, None, node)
    if step.optimizer is None:
        method(m, step.model, "eval", node)
        m.grad.append(False)
        try:
            return m.call_value(step.model, [inputs], {}, node)
        finally:
            m.grad.pop()
    method(m, step.optimizer, "zero_grad", node)
    method(m, step.model, "train", node)
    found = m.call_value(step.model, [inputs], {}, node)
    loss = m.call_value(step.loss_fn, [found, targets], {}, node)
    if isinstance(loss, Tensor):
        method(m, loss, "backward", node)
    else:
        things = [each for each in (step.model, step.optimizer) if isinstance(each, Model)]
        m.expose(things, "supervised_training_step", node)
    method(m, step.optimizer, "step", node)
    return loss


def _fire(m: Interpreter, engine: Engine, event: str) -> None:
    """Call the handlers of an event. Those that step a schedule at the start of an iteration or an
    epoch set the rate for it: they count as coming after the one before."""
    for handler in [*engine.handlers]:
        schedule = handler.function if isinstance(handler.function, AttachedSchedule) else None
        when = handler.event
        if schedule is not None:
            when = when.replace("_STARTED", "_COMPLETED")
        if when != event:
            continue
        with m.guarded([handler.guard]) if handler.guard else contextlib.nullcontext():
            if schedule is None:
                _handle(m, engine, handler)
            elif schedule.schedule is not None:
                method(m, schedule.schedule, "step", handler.node)


def _handle(m: Interpreter, engine: Engine, handler: Handler) -> None:
    """A handler gets the engine first, where it takes one argument more than it was given."""
    function = handler.function
    args = handler.args
    if isinstance(function, (Function, Method)):
        inner = function.function if isinstance(function, Method) else function
        most = most_arguments(inner, isinstance(function, Method))
        if most is None or most > len(args):
            args = [engine, *args]
    elif isinstance(function, OpaqueObject) and function.kind.startswith("ignite."):
        return  # a checkpoint, a progress bar, a timer
    _call(m, function, args, handler.kwargs, handler.node)


def run_waiting(m: Interpreter) -> None:
    """Run the engines that train and that nothing has run: whoever gets them does."""
    for engine in [*m.reach.engines]:
        if isinstance(engine, Engine) and not engine.runs and _trains(engine):
            run(m, engine, Unknown("data"), Unknown("max_epochs"), None, engine.node, "data")


_UPDATES = frozenset({"backward", "step", "zero_grad"})


def _trains(engine: Engine) -> bool:
    step = engine.step
    if isinstance(step, SupervisedStep):
        return isinstance(step.optimizer, Optimizer)
    inner = step.function if isinstance(step, Method) else step
    if not isinstance(inner, Function):
        return False
    contents = inner.module.survey.contents.get(id(inner.node))
    return contents is not None and not _UPDATES.isdisjoint(contents.names)
