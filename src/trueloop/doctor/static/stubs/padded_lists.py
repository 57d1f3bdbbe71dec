"""Lists that a number makes as long as others: `row + [PAD] * (longest - len(row))`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import Tensor
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.syntax import once, written
from trueloop.doctor.static.interpreter.values import Sequence, Unknown, Value, constant

_ROWS = 4
"""Rows of a batch that are looked at."""


def repeated(m: Interpreter, items: Sequence, count: Value, node: ast.AST) -> Sequence:
    """`items * count`."""
    made = Sequence(items.kind, list(items.values), True, turns=m.turns_begun)
    if len(items.values) == 1 and (_asks_for_length(node) or "len(" in m.key(count)):
        made.filler = constant(items.values[0])
    return made


def filled_up(made: Sequence, parts: Iterable[Value]) -> Sequence:
    """A list that was put together, with the number that fills one of its parts up."""
    for each in parts:
        if isinstance(each, Sequence) and each.filler is not None:
            made.filler = each.filler
    return made


@once
def _asks_for_length(node: ast.AST) -> bool:
    calls = (each for each in walk(node) if isinstance(each, ast.Call))
    return any(getattr(each.func, "id", "") == "len" for each in calls)


def padding_in(values: list[Value]) -> frozenset[float]:
    """The numbers that fill up the rows of a batch, or the one row, that a tensor is made of."""
    rows = values[:1]
    for each in rows[:]:
        rows += each.values[:_ROWS] if isinstance(each, Sequence) else ()
    return frozenset(
        part.filler
        for row in rows
        for part in (row.of if isinstance(row, Unknown) else (row,))
        if isinstance(part, Sequence) and isinstance(part.filler, (int, float))
    )


def masked_out(rows: Tensor, value: object, node: ast.AST) -> frozenset[float]:
    """The number that a comparison puts in the place of some targets of each row:
    `targets[position < start] = -100`. A picture has three dimensions with its batch."""
    index = node.slice if isinstance(node, ast.Subscript) else None
    number = constant(value)
    if not isinstance(index, ast.Compare) or "rand" in written(index) or type(number) is not int:
        return frozenset()
    of_rows = rows.shape is not None and len(rows.shape) == 2
    return frozenset({number}) if of_rows else frozenset()
