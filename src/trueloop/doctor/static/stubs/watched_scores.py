"""The origin of the number that a schedule watches."""

from __future__ import annotations

import ast

from trueloop.doctor.model.returned_scores import called_part, returned
from trueloop.doctor.static.interpreter import imports
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.passed_arguments import (
    code_around,
    origins_by_level,
    stores_in,
)
from trueloop.doctor.static.interpreter.values import Class, Function, Imported, Value


def origins_of_score(m: Interpreter, node: ast.expr) -> list[ast.expr]:
    """The expressions that a score comes from, up to what a function of the user's returns."""
    found = [(node, len(m.calls)), *origins_by_level(m, node)]
    expression, level = found[-1]
    call, part = called_part(expression)
    function = _called(m, call.func, level) if call is not None else None
    behind = returned(function.node, part) if function is not None else []
    return [*(each for each, _ in found[1:]), *behind]


def _called(m: Interpreter, function: ast.expr, level: int) -> Function | None:
    """The function of the user's that is called in the code at this level of calls."""
    found: Value | None = None
    if isinstance(function, ast.Name):
        found = _global(m, function.id, level)
    elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        owner = _class_of(m, function.value.id, level)
        found = owner.lookup(function.attr) if owner is not None else None
    return found if isinstance(found, Function) else None


def _class_of(m: Interpreter, name: str, level: int) -> Class | None:
    """The class of the object that a variable holds, which was made in the same code."""
    if name == "self":
        receiver = m.receivers[level - 1] if level else None
        cls = getattr(receiver, "cls", None)
        return cls if isinstance(cls, Class) else None
    made = stores_in(code_around(m, level + 1)).get(name, [])
    call = made[0] if len(made) == 1 else None
    kind = call.func if isinstance(call, ast.Call) else None
    found = _global(m, kind.id, level) if isinstance(kind, ast.Name) else None
    return found if isinstance(found, Class) else None


def _global(m: Interpreter, name: str, level: int) -> Value | None:
    """The value of a name in the file whose code runs at this level."""
    scope = m.namespaces.get(id(m.modules[level])) if level < len(m.modules) else None
    found = scope.variables.get(name) if scope is not None else None
    return imports.value_in(m, scope, name) if scope and isinstance(found, Imported) else found
