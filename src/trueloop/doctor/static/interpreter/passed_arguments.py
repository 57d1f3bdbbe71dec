"""Where an argument's value was written: at the call, or further out, at a caller's own call."""

from __future__ import annotations

import ast
from typing import NamedTuple

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.syntax import once


class _Passing(NamedTuple):
    """An argument as one call passes it: the expression, or what is spread (`**kwargs`)."""

    value: ast.expr | None
    spread: tuple[str, ...]


def where_passed(m: Interpreter, node: ast.Call, name: str) -> Location:
    """The call that decides the keyword argument `name` of `node`: a function that only hands on
    what it was given is not the one that has to change."""
    return _outermost(m, node, name, _of_keyword(node, name))


def where_variable_passed(m: Interpreter, node: ast.AST, name: str) -> Location:
    """The call that decides the variable `name`, which `node` uses in the function that runs."""
    return _outermost(m, node, name, _Passing(ast.Name(name), ()))


def _outermost(m: Interpreter, node: ast.AST, name: str, passing: _Passing) -> Location:
    place = m.place(node)
    for level in range(len(m.calls), 0, -1):
        where, definition = m.calls[level - 1]
        args = getattr(definition, "args", None)
        if args is None:
            break
        parameter = _parameter(args, passing, name)
        around = m.calls[level - 2][1] if level > 1 else m.modules[0].tree
        call = _calls(around).get((where.line, where.column))
        if not parameter or call is None:
            break
        passing = _given(args, call, parameter)
        if passing.value is None and not passing.spread:
            break
        place, name = where, parameter
    return place


def _parameter(args: ast.arguments, passing: _Passing, name: str) -> str:
    """The parameter that an argument is handed on from; empty if it is none."""
    names = [each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    if isinstance(passing.value, ast.Name):
        return passing.value.id if passing.value.id in names else ""
    handed_on = args.kwarg is not None and args.kwarg.arg in passing.spread
    return name if handed_on and passing.value is None else ""


def _given(args: ast.arguments, call: ast.Call, parameter: str) -> _Passing:
    found = _of_keyword(call, parameter)
    names = [each.arg for each in (*args.posonlyargs, *args.args)]
    if found.value is None and parameter in names:
        bound = isinstance(call.func, ast.Attribute) and names[0] in ("self", "cls")
        position = names.index(parameter) - bound
        if 0 <= position < len(call.args):
            return _Passing(call.args[position], ())
    return found


def _of_keyword(call: ast.Call, name: str) -> _Passing:
    value = next((each.value for each in call.keywords if each.arg == name), None)
    spread = [each.value for each in call.keywords if each.arg is None]
    return _Passing(value, tuple(each.id for each in spread if isinstance(each, ast.Name)))


@once
def _calls(definition: ast.AST) -> dict[tuple[int, int], ast.Call]:
    """The calls in a function or a file, by line and column."""
    return {
        (node.lineno, node.col_offset + 1): node
        for node in walk(definition)
        if isinstance(node, ast.Call)
    }
