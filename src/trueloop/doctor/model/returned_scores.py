"""The value that a function returns, as its source computes it: a caller may watch it under any
name."""

from __future__ import annotations

import ast
from collections import defaultdict
from copy import copy

from trueloop.doctor.model.nodes import FIELDS
from trueloop.doctor.model.variables import stores

_DEEPEST = 4
"""Variables within variables that are replaced by what they hold."""
_LONGEST = 300
"""Characters of an expression that still reads as one score."""


def called_part(node: ast.expr) -> tuple[ast.Call | None, int | None]:
    """The call whose result an expression is, or is this part of: `f(x)`, `f(x)[1]`."""
    part = node.slice if isinstance(node, ast.Subscript) else None
    number = part.value if isinstance(part, ast.Constant) else None
    call = node.value if isinstance(node, ast.Subscript) else node
    if not isinstance(call, ast.Call) or (part is not None and not isinstance(number, int)):
        return None, None
    return call, number if isinstance(number, int) else None


def returned(definition: ast.AST, part: int | None) -> list[ast.expr]:
    """The one value that a function returns, or this part of the tuple: as it is written, and with
    its variables replaced by what is put into them, or added up in them."""
    nodes = _own_nodes(definition)
    values = [each.value for each in nodes if isinstance(each, ast.Return)]
    if len(values) != 1 or any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in nodes):
        return []
    value = values[0]
    if part is not None:
        elements = value.elts if isinstance(value, ast.Tuple) else []
        value = elements[part] if -len(elements) <= part < len(elements) else None
    if value is None or isinstance(value, (ast.Tuple, ast.Starred)):
        return []
    spelled = _SpelledOut(_amounts(definition, nodes)).visit(value)
    assert isinstance(spelled, ast.expr)
    return [value, spelled] if len(ast.unparse(spelled)) <= _LONGEST else [value]


def _own_nodes(definition: ast.AST) -> list[ast.AST]:
    """The nodes of a function's body, without those of functions inside it."""
    found: list[ast.AST] = [*getattr(definition, "body", ())]
    for node in found:  # it grows meanwhile
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        for name in FIELDS[type(node)]:
            value = getattr(node, name)
            parts = value if isinstance(value, list) else [value]
            found += [each for each in parts if each is not None]
    return found


def _amounts(definition: ast.AST, nodes: list[ast.AST]) -> dict[str, ast.expr]:
    """Variable -> the only expression that is put into it, added to it or appended to it, apart
    from what it begins with."""
    added: dict[str, list[ast.expr]] = defaultdict(list)
    appended: dict[str, list[ast.expr]] = defaultdict(list)
    for node in nodes:
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            if isinstance(node.target, ast.Name):
                added[node.target.id].append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            holder = node.func.value
            if node.func.attr == "append" and isinstance(holder, ast.Name) and node.args:
                appended[holder.id].append(node.args[0])
    found = dict[str, ast.expr]()
    for name, assigned in stores(definition).items():
        put = [each for each in assigned if each is not None and not _is_empty(each)]
        put += [*added[name], *appended[name]]
        if len(put) == 1 and assigned.count(None) == len(added[name]):
            found[name] = put[0]
    return found


def _is_empty(node: ast.expr) -> bool:
    """The value that a sum or a list begins with: `0.0`, `[]`, `torch.zeros(1)`."""
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name == "zeros" or (name in ("tensor", "list") and all(map(_is_empty, node.args)))
    return isinstance(node, ast.Constant) or (isinstance(node, ast.List) and not node.elts)


class _SpelledOut(ast.NodeTransformer):
    """Puts what variables hold in their place."""

    def __init__(self, amounts: dict[str, ast.expr]) -> None:
        self.amounts = amounts
        self.depth = 0

    def visit(self, node: ast.AST) -> ast.AST:
        held = self.amounts.get(node.id) if isinstance(node, ast.Name) else None
        if held is None or self.depth == _DEEPEST:
            other: ast.AST = super().visit(node)
            return other
        self.depth += 1
        found = self.visit(held)
        self.depth -= 1
        return found

    def generic_visit(self, node: ast.AST) -> ast.AST:
        found = copy(node)  # the tree itself stays as it is
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(found, name, [*value])
        return super().generic_visit(found)
