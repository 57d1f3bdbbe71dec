"""The lengths that lists have in a real run, though only a few turns of the loops that fill them
are gone through."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from trueloop.doctor.model.known_values import loop_of
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import Loop, Tensor, Turn
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import (
    CombinedIterable,
    Constant,
    Sequence,
    Unknown,
    Value,
)

_ENDS = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Try, ast.While)


@once
def done_each_turn(loop: ast.AST) -> frozenset[int]:
    """The calls, by identity, that each turn of a loop makes once as statements; none where a turn
    may end early. Those of a loop inside of it are made once in each of its turns."""
    body = getattr(loop, "body", [])
    ends = any(isinstance(each, _ENDS) for part in body for each in walk(part))
    return frozenset() if ends else frozenset(_calls(body))


def _calls(body: list[ast.stmt]) -> Iterator[int]:
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            yield id(statement.value)
        elif isinstance(statement, ast.AugAssign):
            yield id(statement)
        elif isinstance(statement, (ast.For, ast.With)):
            yield from _calls(statement.body)


def note_added(m: Interpreter, items: Sequence, node: ast.AST, count: int) -> None:
    """A statement adds so many elements to a list."""
    newer = [
        turn
        for turn, start in zip(m.turns, m.turn_starts, strict=True)
        if start > items.turns and not _goes_through_all(turn.loop)
    ]
    if items.total is None and not newer:
        return  # all of them are in the list
    if m.guards or items.kind != "list":
        items.uncounted = True
        return
    if not newer:
        items.total = (items.total or 0) + count
        return
    first = all(turn.index == 0 for turn in newer)
    if id(node) in items.sites and not first:
        return
    turns = _turns_in_all(newer, node)
    if turns is None or not first:
        items.uncounted = True
        return
    if items.total is None and (items.open or items.grown):
        items.uncounted = True
        return
    items.sites = items.sites | {id(node)}
    items.total = len(items.values) if items.total is None else items.total
    items.growing += 1
    newer[0].loop.additions.append((items, turns * count))


def _goes_through_all(loop: Loop) -> bool:
    return loop.kind == "other" and loop.turns == loop.simulated


def _turns_in_all(turns: list[Turn], node: ast.AST) -> int | None:
    numbers = [each.loop.turns for each in turns if id(node) in each.loop.each_turn]
    known = [each for each in numbers if isinstance(each, int)]
    return math.prod(known) if len(known) == len(turns) else None


def note_end(loop: Loop) -> None:
    """A loop is over: the lists that it filled have their lengths."""
    for items, count in loop.additions:
        items.total = (items.total or 0) + count
        items.growing -= 1
    loop.additions.clear()


def count_of(value: Value | None) -> int | None:
    """How many elements there are to go through, where constants decide it."""
    if isinstance(value, Sequence):
        return value.length
    if isinstance(value, (Tensor, Unknown)):
        size = value.shape[0] if value.shape else None
        return size if isinstance(size, int) else None
    if isinstance(value, Constant):
        return len(value.value) if isinstance(value.value, (str, tuple, list)) else None
    if not isinstance(value, CombinedIterable):
        return None
    if value.kind == "range":
        ends = [each.value for each in value.sources if isinstance(each, Constant)]
        fixed = len(ends) == 3 and not any(loop_of(each) for each in value.sources)
        whole = fixed and all(type(each) is int for each in ends) and ends[2]
        return len(range(*ends)) if whole else None
    if value.kind == "taken":
        stop = value.sources[1]
        return stop.value if isinstance(stop, Constant) and type(stop.value) is int else None
    counts = [count_of(each) for each in value.sources]
    known = [each for each in counts if each is not None]
    if value.kind in ("enumerate", "plain") and len(counts) == 1:
        whole = value.kind == "enumerate" or value.start is None
        return counts[0] if whole else None
    return min(known) if value.kind == "zip" and known and len(known) == len(counts) else None
