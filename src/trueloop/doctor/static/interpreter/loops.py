"""Loops: which turns of them are gone through, and with what."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from trueloop.doctor.model.events import BatchFetched, LoopEntered, LoopLeft
from trueloop.doctor.model.nodes import cut_at, walk
from trueloop.doctor.model.things import NOWHERE, Loop
from trueloop.doctor.static.interpreter.counters import once_by_default
from trueloop.doctor.static.interpreter.generators import (
    generator_in,
    hands_on,
    loop_over_generator,
    through_wrappers,
)
from trueloop.doctor.static.interpreter.interpreter import ControlFlow, Interpreter
from trueloop.doctor.static.interpreter.list_lengths import done_each_turn, note_end
from trueloop.doctor.static.interpreter.loop_plans import (
    TURNS,
    LoopPlan,
    elements,
    plan,
    turns_of_windows,
)
from trueloop.doctor.static.interpreter.survey import Comprehension, last_name
from trueloop.doctor.static.interpreter.syntax import (
    may_leave,
    names_bound,
    once,
    returned_sum,
    written,
)
from trueloop.doctor.static.interpreter.unread_backwards import unread_backward
from trueloop.doctor.static.interpreter.values import (
    CombinedIterable,
    Constant,
    Generator,
    Parameters,
    Scope,
    Sequence,
    Unknown,
    Value,
    runs_user_code,
)
from trueloop.doctor.static.stubs import dict_batches, frozen_by_identity, frozen_by_name

_BY_HAND = re.compile(r"batch|step|iter", re.I)


def go_through(
    m: Interpreter, value: Value, node: Comprehension, turn: Callable[[Any], None]
) -> bool:
    """A comprehension's turns, which are a loop over batches where a loader is gone through, or
    each element is trained on; and whether these are all."""
    how = None if isinstance(value, Generator) else plan(m, value, node)
    survey = m.modules[-1].survey
    trains = id(node) in survey.contents and survey.loop_kind(node) == "batches"
    if how is None or (how.loader is None and not trains):
        values, is_whole = elements(m, value, node)
        if not trains:
            for each in values:
                # What is fetched for one number is not what is fetched for the next.
                m.turns_begun += isinstance(each, Constant)
                turn(each)
            return is_whole
        how = LoopPlan(len(values), lambda loop, index: values[index], is_whole)
    loop = Loop(
        place=m.place(node),
        loader=how.loader,
        turns=how.size,
        endless=how.endless,
        kind="batches",
        simulated=how.count,
    )
    loop.over, loop.counted, loop.takes = written(node.generators[0].iter), how.counted, how.takes
    m.emit(LoopEntered, node, loop=loop)
    for index in range(how.count):
        with m.turn(loop, index):
            batch = how.make(loop, index)
            m.emit(BatchFetched, node, loop=loop, loader=how.loader, batch=batch)
            dict_batches.notice(m, node, how.loader)
            turn(batch)
    _leave(m, node, loop)
    return how.complete


def _leave(m: Interpreter, node: ast.AST, loop: Loop) -> None:
    returned = returned_sum(node)
    m.emit(
        LoopLeft,
        node,
        loop=loop,
        unread_backward=not m.turns and unread_backward(m),
        returned=m.place(returned) if returned is not None else NOWHERE,
    )


def run_for(m: Interpreter, node: ast.For | ast.AsyncFor, scope: Scope) -> ControlFlow | None:
    """A `for` loop."""

    iterable = through_wrappers(m, m.evaluate(node.iter, scope))
    generator = generator_in(iterable)
    if generator is not None:
        return loop_over_generator(m, node, iterable, generator, scope)
    how = plan(m, iterable, node.iter)
    loop = Loop(
        place=m.place(node),
        loader=how.loader,
        variables=names_bound(node.target),
        turns=how.size,
        endless=how.endless,
        leaves=may_leave(node),
        cut_at=cut_at(node) or once_by_default(m, how.size),
        kind=_kind(m, node, how, scope),  # type: ignore[arg-type]
    )
    loop.resumed_from = _start(iterable)
    loop.over, loop.counted, loop.takes = written(node.iter), how.counted, how.takes
    loop.lines, loop.each_turn, loop.parts = len(node.body), done_each_turn(node), how.parts
    loop.acts = acts_in_environment(node)

    def turn(index: int) -> ControlFlow | None:
        value = how.make(loop, index)
        if loop.kind == "batches":
            m.emit(BatchFetched, node, loop=loop, loader=how.loader, batch=value)
            dict_batches.notice(m, node, how.loader)
        m.assign(node.target, value, scope)
        return m.run_block(node.body, scope)

    signal = _go(m, node, loop, how, turn, scope)
    if signal is None:
        frozen_by_name.notice(m, node, iterable, scope)
        if isinstance(iterable, Parameters):
            frozen_by_identity.notice(m, node, iterable, scope)
        return m.run_block(node.orelse, scope)
    return None if signal is ControlFlow.BREAK else signal


def _start(iterable: Value) -> Value | None:
    """The number that a loop over a range begins with; None for other loops."""
    while isinstance(iterable, CombinedIterable) and iterable.kind == "plain":
        iterable = iterable.sources[0]
    if isinstance(iterable, CombinedIterable) and iterable.kind == "range":
        return iterable.sources[0]
    return None


def _kind(m: Interpreter, node: ast.For | ast.AsyncFor, how: LoopPlan, scope: Scope) -> str:
    if how.loader is not None:
        return "other" if hands_on(scope, node) else "batches"
    found = scope.module.survey.loop_kind(node)
    if found == "epochs" and how.windows:
        return "batches"  # one turn has the batches of one update
    if found == "epochs" and how.complete and not isinstance(how.size, str) and how.listed:
        return "other"  # phases, models, folds: listed one by one
    if found == "other" and how.by_hand and _BY_HAND.search(written(node.iter)):
        return "batches"
    return found


def _go(
    m: Interpreter,
    node: ast.For | ast.AsyncFor | ast.While,
    loop: Loop,
    how: LoopPlan,
    turn: Callable[[int], ControlFlow | None],
    scope: Scope,
) -> ControlFlow | None:

    count = how.count
    if not how.complete and not how.acts:
        if not _worth(m, node, scope):
            count = min(count, 1)
        elif len(m.turns) >= 2 and loop.kind == "other" and loop.loader is None:
            count = min(count, 2)
    loop.simulated = count
    m.emit(LoopEntered, node, loop=loop)
    signal: ControlFlow | None = None
    around, m.levels = m.levels, 0
    index = 0
    while index < loop.simulated:
        with m.turn(loop, index):
            signal = turn(index)
        if signal is not None and signal is not ControlFlow.CONTINUE:
            break
        signal = None
        index += 1
        if m.levels >= 2 and (not how.complete or _only_numbers(how, loop)):
            # A search, or folds: a training in each turn. In a loop of such loops, one more is one.
            loop.simulated = min(count, 1 if any(each.index for each in m.turns) else 2)
    m.unfinished += not (how.complete and loop.simulated == how.count)
    is_level = loop.kind == "batches" or (loop.kind == "epochs" and m.levels > 0)
    m.levels = max(around, m.levels + is_level)
    _leave(m, node, loop)
    note_end(loop)
    return signal


def _only_numbers(how: LoopPlan, loop: Loop) -> bool:
    """The elements of a list are unknown, or numbers: a training with one is like with the next."""
    if not how.listed:
        return False
    parts: list[Value] = []
    for each in (how.make(loop, index) for index in range(how.count)):
        parts += each.values if isinstance(each, Sequence) else [each]
    return any(isinstance(each, Unknown) for each in parts) and all(
        isinstance(each, Unknown)
        or (isinstance(each, Constant) and isinstance(each.value, (int, float)))
        for each in parts
    )


def adds_in_part(m: Interpreter, items: Sequence) -> bool:
    """A loop that adds to a list makes more turns than are gone through here."""
    return any(
        start > items.turns
        and (turn.loop.kind != "other" or turn.loop.turns != turn.loop.simulated)
        for turn, start in zip(m.turns, m.turn_starts, strict=True)
    )


@once
def _adds_up(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """`total += ...` in a loop, by itself or under a condition."""
    return any(
        isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add)
        for statement in loop.body
        for each in (statement, *getattr(statement, "body", ()))
    )


def _worth(m: Interpreter, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> bool:
    """A second turn may show something that the first one does not."""
    survey = scope.module.survey
    if survey.interesting(node) or survey.contents[id(node)].yields:
        return True
    if _adds_up(node) and any(turn.loop.loader is not None for turn in m.turns):
        return True  # several terms of one batch, where one turn would show one
    names = survey.contents[id(node)].names
    m.spend(len(names) >> 4, node)
    if any(name in survey.functions for name in names) or not names.isdisjoint(m.project.names):
        return True
    # `step_fn(batch)`, where the caller handed over what to do.
    holders = ((name, scope.find(name)) for name in names)
    return any(
        runs_user_code(holder.variables.get(name))
        or isinstance(holder.waiting.get(name), ast.FunctionDef)
        for name, holder in holders
        if holder is not None
    )


def run_while(m: Interpreter, node: ast.While, scope: Scope) -> ControlFlow | None:
    """A `while` loop: a few turns, as long as its condition is not certainly false."""

    condition = m.evaluate(node.test, scope)
    outcome = m.verdict(condition)[0]
    if outcome is False:
        return m.run_block(node.orelse, scope)
    kind = scope.module.survey.loop_kind(node)
    endless = isinstance(node.test, ast.Constant)
    loop = Loop(place=m.place(node), kind=kind, endless=endless)  # type: ignore[arg-type]
    loop.acts = acts_in_environment(node)
    if isinstance(condition, CombinedIterable) and condition.kind == "taken" and kind == "epochs":
        loop.kind, loop.turns = "batches", turns_of_windows(condition)

    def turn(index: int) -> ControlFlow | None:
        if index and m.verdict(m.evaluate(node.test, scope))[0] is False:
            return ControlFlow.BREAK
        if loop.kind == "batches":
            m.emit(BatchFetched, node, loop=loop, loader=None)
        return m.run_block(node.body, scope)

    how = LoopPlan(TURNS, lambda loop, index: None)
    signal = _go(m, node, loop, how, turn, scope)
    if signal is None:
        m.run_block(node.orelse, scope)
    return None if signal in (None, ControlFlow.BREAK) else signal


_ENVIRONMENT = re.compile(r"(^|_)(env|envs|environment|environments|simulator|game)(_|\d|$)", re.I)


@once
def acts_in_environment(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Each turn, or a loop in it, gives an action to an environment: `self.env.step(action)`."""
    calls = (each.func for each in walk(loop) if isinstance(each, ast.Call) and each.args)
    methods = (each for each in calls if isinstance(each, ast.Attribute) and each.attr == "step")
    return any(_ENVIRONMENT.search(last_name(each.value)) for each in methods)
