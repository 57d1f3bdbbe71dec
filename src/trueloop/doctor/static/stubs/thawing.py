"""Code that thaws parameters in a turn that the reader may not come to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueloop.doctor.model.nodes import last_part, walk
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
            if parts and not _may_be_called_later(tree, node.name):
                continue
        else:
            continue
        if any(_thaws(inner) for part in parts for inner in walk(part) if id(inner) not in own):
            return True
    return False


def _may_be_called_later(tree: ast.Module, name: str) -> bool:
    """Some call of a function is under a condition, in the end, or in a different file. Calls that
    the reader comes to speak for themselves."""
    names, waiting = {name}, [name]
    while waiting:
        calls = _calls(tree).get(waiting.pop(), [])
        if not calls or any(under for _, under in calls):
            return True
        callers = {around for around, _ in calls if around} - names
        names |= callers
        waiting += callers
    return False


@once
def _calls(tree: ast.Module) -> dict[str, list[tuple[str, bool]]]:
    """The calls of each name in a file: the function around it, empty for none, and whether it is
    under a condition there."""
    found: dict[str, list[tuple[str, bool]]] = {}
    called: set[ast.expr] = set()
    waiting: list[tuple[ast.AST, str, bool]] = [(tree, "", False)]
    while waiting:
        node, around, under = waiting.pop()
        if isinstance(node, ast.Call):
            found.setdefault(last_part(node.func), []).append((around, under))
            called.add(node.func)
        elif isinstance(node, (ast.Name, ast.Attribute)) and node not in called:
            found.setdefault(last_part(node), []).append((around, True))  # whoever gets it calls it
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            around, under = node.name, False
        elif isinstance(node, ast.Lambda):
            under = True
        elif isinstance(node, (ast.If, ast.IfExp, ast.BoolOp)):
            under = under or not _is_main(node)
        waiting += [(child, around, under) for child in ast.iter_child_nodes(node)]
    return found


def _is_main(node: ast.AST) -> bool:
    """`if __name__ == "__main__":`."""
    return any(getattr(each, "id", "") == "__name__" for each in walk(getattr(node, "test", node)))


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
