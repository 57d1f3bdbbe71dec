"""Comprehensions: the elements of their first few turns. Dictionaries that are written out."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from trueloop.doctor.model.arithmetic import SIZE
from trueloop.doctor.model.things import Model, StateDict
from trueloop.doctor.static.interpreter import conditions
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.keys import put
from trueloop.doctor.static.interpreter.list_lengths import count_of
from trueloop.doctor.static.interpreter.loops import go_through
from trueloop.doctor.static.interpreter.survey import Comprehension
from trueloop.doctor.static.interpreter.values import (
    DictValue,
    Scope,
    Sequence,
    Value,
)
from trueloop.doctor.static.stubs import repeated_layers
from trueloop.doctor.static.stubs.checkpoints import state_of_comprehension


@dataclass(slots=True)
class _Elements:
    """The elements of a comprehension so far."""

    found: list[Any] = field(default_factory=list)
    """Elements; of a dict, pairs of a key and a value."""
    counts: dict[int, int | None] = field(default_factory=dict)
    """Position of a `for` -> how many turns it makes in a real run."""
    complete: bool = True


def comprehension(m: Interpreter, node: Comprehension, scope: Scope) -> Value:
    """The elements of the first few turns, in a separate scope."""
    inner = Scope(scope.module, scope, scope.function, scope.owner, scope.receiver)
    made = _Elements()
    _go(m, node, inner, 0, made)
    values = [each[1] for each in made.found] if isinstance(node, ast.DictComp) else made.found
    if len(values) > 1 and values[0] is values[1] and isinstance(values[0], Model):
        repeated_layers.notice_elements(m, node, values[0])
    if isinstance(node, ast.DictComp):
        state = state_of_comprehension(m, node, inner) if made.found else None
        return _table_of(m, made.found, made.complete) if state is None else state
    kind = {ast.ListComp: "list", ast.SetComp: "set"}.get(type(node), "generator")
    items = Sequence(kind, made.found, not made.complete, m.place(node), m.turns_begun)
    known = [each for each in made.counts.values() if each is not None]
    if not made.complete and kind == "list" and len(known) == len(node.generators):
        items.total = math.prod(known)
    return items


# Not a function inside of `comprehension`: one that calls itself is garbage in a circle, and all
# values of the run with it.
def _go(m: Interpreter, node: Comprehension, inner: Scope, position: int, made: _Elements) -> None:
    """Go through the `for` at a position and those after it, for one element of those before."""
    if position == len(node.generators):
        if isinstance(node, ast.DictComp):
            made.found.append((m.evaluate(node.key, inner), m.evaluate(node.value, inner)))
        else:
            made.found.append(m.evaluate(node.elt, inner))
        return
    generator = node.generators[position]

    def turn(element: Value) -> None:
        m.assign(generator.target, element, inner)
        outcomes = [conditions.outcome_of(m, condition, inner) for condition in generator.ifs]
        if any(guards for _, guards in outcomes):
            made.complete = False
        if all(outcome for outcome, _ in outcomes):
            _go(m, node, inner, position + 1, made)

    source = m.evaluate(generator.iter, inner)
    count = None if generator.ifs else count_of(source)
    made.counts[position] = count if made.counts.get(position, count) == count else None
    whole = go_through(m, source, node, turn)
    made.complete &= whole  # after the turns, which may have found that they are not all


def _table_of(m: Interpreter, pairs: list[tuple[Any, Any]], complete: bool) -> DictValue:
    table = DictValue({}, not complete, turns=m.turns_begun)
    for key, value in pairs:
        put(table, key, value)
    return table


def dictionary(m: Interpreter, node: ast.Dict, scope: Scope) -> Value:
    """A dictionary that is written out."""
    table = DictValue({}, len(node.keys) > SIZE, turns=m.turns_begun)
    for key_node, value_node in islice(zip(node.keys, node.values, strict=True), SIZE):
        value = m.evaluate(value_node, scope)
        if key_node is None:
            if isinstance(value, DictValue):
                m.spend(len(value.entries) >> 3, value_node)
                table.merge(value)
            elif isinstance(value, StateDict) and len(node.keys) == 1:
                return value  # `{**model.state_dict()}`: of the same live tensors
            else:
                table.put_somewhere(value)
            continue
        key = m.evaluate(key_node, scope)
        put(table, key, value)
    return table
