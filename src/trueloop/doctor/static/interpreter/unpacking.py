"""Unpacking: `a, b = value`."""

from __future__ import annotations

import ast
from typing import Any

from trueloop.doctor.model.known_values import loop_of
from trueloop.doctor.model.things import Model, Tensor
from trueloop.doctor.static.interpreter.derived_containers import container_in
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.step_budget import ProgramFailsError
from trueloop.doctor.static.interpreter.syntax import nodes_of, once
from trueloop.doctor.static.interpreter.values import (
    Constant,
    Instance,
    OpaqueObject,
    Parameters,
    Sequence,
    Unknown,
    Value,
)
from trueloop.doctor.static.stubs.tensors import parts_of


def unpack(
    m: Interpreter, value: Any, count: int, starred: int | None, node: ast.AST
) -> list[Value]:
    """`a, b = value`: the parts. Raises `ProgramFailsError` where Python is sure to refuse."""
    if isinstance(value, Instance):
        held = container_in(value)
        value = held if isinstance(held, Sequence) else value
    if isinstance(value, Constant) and m.returned is not None and m.returned[0] is value:
        _refuse_nothing(m, m.returned[1], count, node)
    if isinstance(value, Sequence):
        values = value.values
        if m.returned is not None and m.returned[0] is value and starred is None:
            _refuse_other_lengths(m, m.returned[1], count, node)
        if starred is None and len(values) == count and not value.open:
            return list(values)
        if starred is not None and len(values) >= count - 1:
            after = count - 1 - starred
            middle = values[starred : len(values) - after]
            tail = values[len(values) - after :] if after else []
            return [*values[:starred], Sequence("list", list(middle), value.open), *tail]
        if values and value.open and len(values) >= count:
            return list(values[:count])
    if isinstance(value, Tensor):
        return parts_of(m, value, count, node)
    if isinstance(value, Constant) and isinstance(value.value, (tuple, str)):
        known: list[Value] = [Constant(each) for each in value.value]
        if len(known) == count:
            return known
    if isinstance(value, (Unknown, OpaqueObject)):
        return [
            Unknown(f"{m.key(value)}[{i}]", (value,), loop_variant=bool(loop_of(value)))
            for i in range(count)
        ]
    if isinstance(value, Parameters):
        return [value] * count
    if isinstance(value, Model) and value.complete and len(value.children) == count:
        return [*value.children.values()]
    return [m.unknown(node, (value,), key=f"{m.key(value)}[{i}]") for i in range(count)]


def chunks_of(m: Interpreter, value: Value, node: ast.AST) -> Value:
    """`*both.chunk(2)`: the two halves; other values as they are."""
    if isinstance(value, Tensor) and isinstance(node, ast.Call) and node.args:
        by_method = isinstance(node.func, ast.Attribute) and node.func.attr == "chunk"
        count = node.args[-1]
        if by_method and isinstance(count, ast.Constant) and isinstance(count.value, int):
            return Sequence("tuple", parts_of(m, value, count.value, node))
    return value


def _refuse_other_lengths(m: Interpreter, function: ast.AST, count: int, node: ast.AST) -> None:
    """Whatever way a function takes, it returns more values than there are names, or fewer."""
    returned = _lengths(function)
    if m.must_succeed and returned and count not in returned:
        name = getattr(function, "name", "the function")
        values = " or ".join(map(str, sorted(returned)))
        why = f"`{name}` returns {values} values, which are unpacked into {count} names"
        raise ProgramFailsError(m.place(node), why)


def _refuse_nothing(m: Interpreter, function: ast.AST, count: int, node: ast.AST) -> None:
    """A function that has no value to return gives None."""
    if m.must_succeed and _never_returns_a_value(function):
        name = getattr(function, "name", "the function")
        why = f"`{name}` returns None, which is unpacked into {count} names"
        raise ProgramFailsError(m.place(node), why)


@once
def _never_returns_a_value(function: ast.AST) -> bool:
    """It has statements, unlike a placeholder that a subclass replaces, and no decorator."""
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return False
    has_value = any(each.value is not None for each in nodes_of(function, ast.Return))
    yields = bool(nodes_of(function, ast.Yield)) or bool(nodes_of(function, ast.YieldFrom))
    acts = any(not isinstance(each, ast.Pass | ast.Raise | ast.Expr) for each in function.body)
    return acts and not has_value and not yields


@once
def _lengths(function: ast.AST) -> frozenset[int]:
    """The lengths of the tuples that a function returns; none if it returns anything else."""
    returns = [each.value for each in nodes_of(function, ast.Return)]
    tuples = [each for each in returns if isinstance(each, ast.Tuple)]
    starred = any(isinstance(part, ast.Starred) for each in tuples for part in each.elts)
    if len(tuples) < len(returns) or starred:
        return frozenset()
    return frozenset(len(each.elts) for each in tuples)
