"""Code that thaws parameters in a turn that the reader may not come to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.syntax import once

_MEMBERS = frozenset("parameters named_parameters modules children named_children".split())


@once
def thaws_later(tree: ast.Module) -> bool:
    """A file switches gradients on under a condition (`if epoch == 5`), or for each of a module's
    parameters inside of a function, which such a condition may call."""
    return thaws_elsewhere(tree, None)


def thaws_elsewhere(tree: ast.Module, loop: ast.AST | None) -> bool:
    """The same, apart from a loop that gives each parameter what its name says."""
    own = set() if loop is None else {id(each) for each in walk(loop)}
    for node in walk(tree):
        if id(node) in own:
            continue
        if isinstance(node, ast.If):
            parts: list[ast.AST] = [*node.body, *node.orelse]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            parts = [each for each in walk(node) if _goes_through_members(each)]
        else:
            continue
        if any(_thaws(inner) for part in parts for inner in walk(part) if id(inner) not in own):
            return True
    return False


def _goes_through_members(node: ast.AST) -> bool:
    return isinstance(node, ast.For) and any(
        isinstance(part, ast.Attribute) and part.attr in _MEMBERS for part in walk(node.iter)
    )


def _thaws(node: ast.AST) -> bool:
    """`p.requires_grad = True`, `model.requires_grad_()`."""
    return any(
        not (isinstance(value, ast.Constant) and value.value is False) for value in _flags(node)
    )


def _flags(node: ast.AST) -> Iterator[ast.expr | None]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
                yield node.value
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "requires_grad_":
        yield node.args[0] if node.args else next((k.value for k in node.keywords), None)
