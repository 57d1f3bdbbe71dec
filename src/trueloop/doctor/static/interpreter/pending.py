"""Definitions at the top of a file that are evaluated when their name is first asked for.

A library's file defines hundreds of names, of which a program uses a few. A definition that can
wait (a function, a class, an assignment to names that nothing else assigns) stays a statement
until somebody needs the name; what may have an effect of its own runs at once, in its order.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.survey import INTERESTING, last_name
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import LibraryName, Scope

_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class TopLevel:
    """The statements at the top of a file."""

    at_once: tuple[ast.stmt, ...]
    waiting: Mapping[str, ast.stmt]
    """Name -> the one statement that binds it."""


def define(m: Interpreter, scope: Scope, *, only_names: bool = False) -> None:
    """Run the top level of a file, as far as it cannot wait.

    `only_names`: only what binds names, without calls and loops.
    """
    tree = scope.module.tree
    split = _names_alone(tree) if only_names else _split(tree)
    m.spend(len(split.waiting) >> 4, tree)
    waiting = scope.waiting = dict(split.waiting)
    scope.waits_in_silence = only_names
    for statement in split.at_once:
        if isinstance(statement, _FunctionNode) and _only_marks(scope, statement):
            waiting[statement.name] = statement
        elif m.run_block([statement], scope) is not None:
            return


def settle(m: Interpreter, scope: Scope, name: str) -> None:
    """Evaluate the definition of a name that has waited until now, as the top of its file."""
    statement = scope.waiting.pop(name)
    for each in _names(statement):
        scope.waiting.pop(each, None)
    m.history.settled += 1
    watch, begun, assigned, beginning = m.watch, m.turns_begun, m.assigned, m.beginning
    if scope.waits_in_silence:
        m.watch = _hears_nothing
    m.turns_begun, m.beginning = 0, False
    try:
        with m.elsewhere(scope.module):
            m.run_block([statement], scope)
    finally:
        m.watch, m.turns_begun, m.assigned, m.beginning = watch, begun, assigned, beginning


def _hears_nothing(event: object) -> None:
    """In place of the rules."""


def _only_marks(scope: Scope, node: _FunctionNode) -> bool:
    """Its decorators are a library's: they keep no list of what they are given."""
    for decorator in node.decorator_list:
        head: ast.AST = decorator
        while isinstance(head, (ast.Call, ast.Attribute)):
            head = head.func if isinstance(head, ast.Call) else head.value
        name = head.id if isinstance(head, ast.Name) else ""
        bound = scope.variables.get(name)
        if name in scope.waiting or not (bound is None or isinstance(bound, LibraryName)):
            return False
    return True


# ------------------------------------------------------------------------------- what can wait


@once
def _split(tree: ast.Module) -> TopLevel:
    return _divided(tree, names_alone=False)


@once
def _names_alone(tree: ast.Module) -> TopLevel:
    return _divided(tree, names_alone=True)


_NAMES = (
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign,
    ast.AnnAssign, ast.If, ast.Try,
)  # fmt: skip


def _divided(tree: ast.Module, *, names_alone: bool) -> TopLevel:
    body = [each for each in tree.body if not names_alone or isinstance(each, _NAMES)]
    bound: dict[str, int] = {}
    for statement in body:
        for name in _names(statement) or _names_inside(statement):
            bound[name] = bound.get(name, 0) + 1
    at_once: list[ast.stmt] = []
    waiting: dict[str, ast.stmt] = {}
    for statement in body:
        names = _names(statement)
        if names and all(bound[each] == 1 for each in names) and _can_wait(statement, names_alone):
            waiting.update(dict.fromkeys(names, statement))
        else:
            at_once.append(statement)
    return TopLevel(tuple(at_once), waiting)


def _names(node: ast.stmt) -> tuple[str, ...]:
    """The names that a definition binds; nothing for other statements, and for assignments to
    anything but names."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return (node.name,)
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    parts = [part for each in targets for part in getattr(each, "elts", [each])]
    if not all(isinstance(part, ast.Name) for part in parts):
        return ()
    return tuple(part.id for part in parts)


def _names_inside(node: ast.stmt) -> set[str]:
    """The names that other kinds of statements bind, or that functions in them do."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {each.asname or each.name.partition(".")[0] for each in node.names}
    found: set[str] = set()
    for each in walk(node):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            found.add(each.id)
        elif isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(each.name)
        elif isinstance(each, (ast.Import, ast.ImportFrom)):
            found.update(alias.asname or alias.name.partition(".")[0] for alias in each.names)
    return found


def _can_wait(node: ast.stmt, names_alone: bool) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return not node.decorator_list  # whose those are is seen when the statement is come to
    if isinstance(node, ast.ClassDef) or names_alone:
        return True
    value = getattr(node, "value", None)
    return value is not None and not any(
        isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr))
        or (isinstance(each, ast.Call) and last_name(each.func) in INTERESTING)
        for each in walk(value)
    )
