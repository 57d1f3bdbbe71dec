"""Where an argument's value was written: at the call, or further out, at a caller's own call."""

from __future__ import annotations

import ast

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.variables import Passing, default_of, given, names_of, of_keyword, stores
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import Constant, Instance
from trueloop.doctor.static.stubs.options import options_of


def where_passed(m: Interpreter, node: ast.Call, name: str) -> Location:
    """The call that decides the keyword argument `name` of `node`: a function that only hands on
    what it was given is not the one that has to change."""
    return _outermost(m, node, name, of_keyword(node, name))


def where_variable_passed(m: Interpreter, node: ast.AST, name: str) -> Location:
    """The call that decides the variable `name`, which `node` uses in the function that runs."""
    return _outermost(m, node, name, Passing(ast.Name(name), ()))


def where_left_out(m: Interpreter, name: str) -> Location | None:
    """The call that leaves the parameter `name` of the function that runs to its default, or that
    gives it a constant; None where it is given anything else."""
    for level in range(len(m.calls), 0, -1):
        where, definition = m.calls[level - 1]
        args, call = getattr(definition, "args", None), call_at(m, level)
        if args is None or call is None or any(isinstance(each, ast.Starred) for each in call.args):
            return None
        value, spread = given(args, call, name)
        if value is None:
            return where if not spread and default_of(args, name) is not None else None
        if isinstance(value, ast.Constant):
            return where
        if not isinstance(value, ast.Name):
            return None
        name = value.id
    return None


def code_around(m: Interpreter, level: int) -> ast.AST:
    """The function, or the file, that makes the call at this level of calls."""
    return m.calls[level - 2][1] if level > 1 else m.modules[0].tree


def call_at(m: Interpreter, level: int) -> ast.Call | None:
    """The call at this level; at the number of all calls, that of the function that runs."""
    where = m.calls[level - 1][0]
    return _calls(code_around(m, level)).get((where.line, where.column))


stores_in = once(stores)
_MOST = 4
"""Steps back from a variable to what it was given."""


def origins(m: Interpreter, node: ast.expr) -> list[ast.expr]:
    """The expressions that a variable of the function that runs comes from: the only one assigned
    to it, or what the caller passes for it, and so on for a variable that is given there."""
    return [each for each, _ in origins_by_level(m, node)]


def origins_by_level(m: Interpreter, node: ast.expr) -> list[tuple[ast.expr, int]]:
    """The same, each with the level of calls that it is written at."""
    found: list[tuple[ast.expr, int]] = []
    level = len(m.calls)
    while isinstance(node, ast.Name) and len(found) < _MOST:
        origin = _origin(m, node.id, level)
        if origin is None:
            break
        found.append(origin)
        node, level = origin
    return found


def with_known_index(m: Interpreter, node: ast.expr) -> ast.expr:
    """`scores["accuracy"]` for `scores[key]`, where a caller, an attribute or the default of an
    option says what `key` is."""
    if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Constant):
        return node
    index = next(reversed(origins(m, node.slice)), None)
    receiver = m.receivers[-1] if m.receivers else None
    if isinstance(node.slice, ast.Attribute) and isinstance(receiver, Instance):
        kept = receiver.attributes.get(node.slice.attr)
        of_self = isinstance(node.slice.value, ast.Name) and node.slice.value.id == "self"
        index = ast.Constant(kept.value) if of_self and isinstance(kept, Constant) else None
    if index is None and isinstance(node.slice, ast.Attribute):
        index = ast.Constant(options_of(m).get(node.slice.attr))
    if not isinstance(index, ast.Constant) or not isinstance(index.value, str):
        return node
    return ast.Subscript(node.value, ast.Constant(index.value), ast.Load())


def _origin(m: Interpreter, name: str, level: int) -> tuple[ast.expr, int] | None:
    """The expression for the variable in the function at this level of calls, and the level that it
    is written at."""
    definition = m.calls[level - 1][1] if level else m.modules[0].tree
    args = getattr(definition, "args", None)
    stored = stores_in(definition).get(name, [])
    if stored or args is None:
        value = stored[0] if len(stored) == 1 else None
        return None if value is None else (value, level)
    if name not in names_of(args):
        stored = stores_in(m.modules[-1].tree).get(name, []) if level == len(m.calls) else []
        value = stored[0] if len(stored) == 1 else None
        return None if value is None else (value, 0)
    call = call_at(m, level)
    constructs = getattr(definition, "name", "") == "__init__"
    passing = Passing(None, ("",))
    if call is not None:
        passing = given(args, call, name, constructs=constructs)
    if passing.value is not None:
        return passing.value, level - 1
    default = default_of(args, name) if not passing.spread else None
    return None if default is None else (default, level)


def _outermost(m: Interpreter, node: ast.AST, name: str, passing: Passing) -> Location:
    place = m.place(node)
    for level in range(len(m.calls), 0, -1):
        where, definition = m.calls[level - 1]
        args = getattr(definition, "args", None)
        if args is None:
            break
        parameter, call = _parameter(args, passing, name), call_at(m, level)
        if not parameter or call is None:
            break
        passing = given(args, call, parameter)
        if passing.value is None and not passing.spread:
            break
        place, name = where, parameter
    return place


def _parameter(args: ast.arguments, passing: Passing, name: str) -> str:
    """The parameter that an argument is handed on from; empty if it is none."""
    names = names_of(args)
    if isinstance(passing.value, ast.Name):
        return passing.value.id if passing.value.id in names else ""
    handed_on = args.kwarg is not None and args.kwarg.arg in passing.spread
    return name if handed_on and passing.value is None else ""


@once
def _calls(definition: ast.AST) -> dict[tuple[int, int], ast.Call]:
    """The calls in a function or a file, by line and column."""
    return {
        (node.lineno, node.col_offset + 1): node
        for node in walk(definition)
        if isinstance(node, ast.Call)
    }
