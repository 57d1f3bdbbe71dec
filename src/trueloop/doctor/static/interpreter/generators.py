"""Loops over generators of the user's: the body of the loop runs at each `yield`."""

from __future__ import annotations

import ast

from trueloop.doctor.model.events import BatchFetched, LoopEntered, LoopLeft
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import Loop
from trueloop.doctor.static.interpreter.calls import enter
from trueloop.doctor.static.interpreter.interpreter import ControlFlow, Interpreter, LeaveGenerator
from trueloop.doctor.static.interpreter.passing_generators import passed_on
from trueloop.doctor.static.interpreter.syntax import names_bound, once, written
from trueloop.doctor.static.interpreter.unread_backwards import unread_backward
from trueloop.doctor.static.interpreter.values import (
    NONE,
    CombinedIterable,
    Constant,
    Function,
    Generator,
    Instance,
    Scope,
    Sequence,
    Value,
)
from trueloop.doctor.static.interpreter.windowing_generators import windows_of
from trueloop.doctor.static.interpreter.yields import at_caller, depth_of

MOST = 64
"""Values of a generator that are taken, where it is not known to end."""


def generator_in(value: Value) -> Generator | None:
    """The generator of the user's that a loop over something goes through: its own, that of an
    object with such an `__iter__`, or either in `enumerate` or `tqdm`."""
    while isinstance(value, CombinedIterable) and value.kind in ("enumerate", "plain"):
        value = value.sources[0]
    if isinstance(value, Instance):
        iterate = value.cls.lookup("__iter__")
        if isinstance(iterate, Function) and _yields(iterate):
            return Generator(iterate, [value], {})
    return value if isinstance(value, Generator) else None


def through_wrappers(m: Interpreter, value: Value) -> Value:
    """The elements that a loop over an object of the user's goes through, where its `__iter__`
    yields those of an attribute as they are."""
    if isinstance(value, CombinedIterable) and value.kind in ("enumerate", "plain"):
        inner = through_wrappers(m, value.sources[0])
        if inner is value.sources[0]:
            return value
        return CombinedIterable(value.kind, [inner, *value.sources[1:]], value.start)
    iterate = value.cls.lookup("__iter__") if isinstance(value, Instance) else None
    if not isinstance(iterate, Function):
        return value
    return passed_on(m, iterate, [value], {}) or windows_of(m, iterate, [value], {}) or value


def _yields(function: Function) -> bool:
    contents = function.module.survey.contents.get(id(function.node))
    return contents is not None and contents.yields


def yielded(m: Interpreter, generator: Generator, node: ast.AST, most: int) -> Sequence:
    """The values that a generator yields where nobody waits for its next one: `list(layers())`."""
    made = Sequence("tuple", [], made=m.place(node), turns=m.turns_begun)
    unfinished = m.unfinished

    def on_yield(each: Value) -> Value:
        made.values.append(each)
        if len(made.values) >= most:
            raise LeaveGenerator
        return NONE

    try:
        enter(m, generator.function, generator.args, generator.kwargs, node, on_yield=on_yield)
    except LeaveGenerator:
        made.open = True
    made.open |= not made.values
    # As with a list that a loop adds to, a few turns stand for all of them.
    made.grown = made.uncounted = m.unfinished != unfinished
    return made


def hands_on(scope: Scope, node: ast.For | ast.AsyncFor) -> bool:
    """A loop of a generator that yields in each turn: the loop that consumes it trains or
    validates, this one does not."""
    survey = scope.module.survey
    own = survey.contents[id(node)].yields and survey.loop_kind(node) == "other"
    return scope.on_yield is not None and own


def loop_over_generator(
    m: Interpreter,
    node: ast.For | ast.AsyncFor,
    iterable: Value,
    generator: Generator,
    scope: Scope,
) -> ControlFlow | None:
    """Run a `for` loop over a generator of the user's; `iterable`: what it is written over."""
    loop = Loop(
        place=m.place(node),
        variables=names_bound(node.target),
        kind=scope.module.survey.loop_kind(node),  # type: ignore[arg-type]
        simulated=3,
    )
    loop.over, loop.lines = written(node.iter), len(node.body)
    left: list[ControlFlow] = []
    index = 0
    before = len(m.turns)
    depth = depth_of(m)

    def turn(value: Value) -> ControlFlow | None:
        if loop.kind == "batches":
            m.emit(BatchFetched, node, loop=loop, loader=loop.loader, batch=value)
        m.assign(node.target, _element(iterable, loop, index, value), scope)
        return m.run_block(node.body, scope)

    def on_yield(value: Value) -> Value:
        nonlocal index
        with at_caller(m, depth):
            if not index:
                _announce(m, node, loop, before, generator)
            try:
                with m.turn(loop, index):
                    signal = turn(value)
            finally:
                index += 1
        if signal is not None and signal is not ControlFlow.CONTINUE:
            left.append(signal)
            raise LeaveGenerator
        return NONE

    try:
        enter(m, generator.function, generator.args, generator.kwargs, node, on_yield=on_yield)
    except LeaveGenerator:
        if not left:
            raise  # that of a different loop
    if not index:
        _announce(m, node, loop, before, generator)
    m.emit(LoopLeft, node, loop=loop, unread_backward=not m.turns and unread_backward(m))
    if not left:
        return m.run_block(node.orelse, scope)
    return left[0] if left[0] is not ControlFlow.BREAK else None


def _announce(m: Interpreter, node: ast.AST, loop: Loop, before: int, generator: Generator) -> None:
    """The loop begins. If the generator hands on what a loader yields, it is a loop over batches of
    this loader; if it yields once in each turn of a loop, it has as many turns as that one."""
    inner = m.turns[before:]
    if len(inner) == 1 and inner[0].loop.place.line == _yields_each_turn(generator.function.node):
        loop.turns, loop.parts = inner[0].loop.turns, inner[0].loop.parts
    source = next((each.loop for each in reversed(inner) if each.loop.loader is not None), None)
    if source is not None and source.kind == "other":
        loop.loader, loop.kind = source.loader, "batches"
        if len(inner) == 1:
            loop.turns = source.turns
    m.emit(LoopEntered, node, loop=loop)


@once
def _yields_each_turn(function: ast.AST) -> int | None:
    """The line of the loop in each turn of which a generator yields once, and nowhere else."""
    body = getattr(function, "body", [])
    loops = [each for each in body if isinstance(each, ast.For)]
    yields = [each for each in walk(function) if isinstance(each, (ast.Yield, ast.YieldFrom))]
    if len(loops) != 1 or len(yields) != 1 or not isinstance(yields[0], ast.Yield):
        return None
    ends = (ast.Break, ast.Continue, ast.Return, ast.Raise)
    plain = not any(isinstance(each, ends) for each in walk(loops[0]))
    once_each = any(getattr(each, "value", None) is yields[0] for each in loops[0].body)
    return loops[0].lineno if plain and once_each else None


def _element(iterable: Value, loop: Loop, index: int, value: Value) -> Value:
    """The value that a turn of the loop takes when one is yielded: `enumerate` adds the count."""
    if not isinstance(iterable, CombinedIterable):
        return value
    inner = _element(iterable.sources[0], loop, index, value)
    if iterable.kind != "enumerate":
        return inner
    first = iterable.start.value if isinstance(iterable.start, Constant) else 0
    count = Constant((first if isinstance(first, int) else 0) + index, loop_variant=loop)
    return Sequence("tuple", [count, inner])
