"""Smooth maxima: `softplus(8 * z) / 8`, which takes back the factor of its own argument.

For large factors it is `relu(z)`. The division belongs to the loss and averages nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.syntax import nodes_of, once, shape

_SMOOTH = frozenset({"softplus", "logsumexp", "logaddexp"})


@once
def factors_taken_back(tree: ast.AST) -> frozenset[int]:
    """The divisions, by identity, of a smooth maximum by the factor inside of it: in one
    expression, or under a local name."""
    if not any(map(_is_smooth, nodes_of(tree, ast.Call))):
        return frozenset()
    functions: list[ast.AST] = [*nodes_of(tree, ast.FunctionDef), *nodes_of(tree, ast.Lambda)]
    return frozenset(found for function in functions for found in _taken_back(function))


def _taken_back(function: ast.AST) -> Iterator[int]:
    named: dict[str, set[str]] = {}
    nodes = walk(function)
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named.setdefault(node.targets[0].id, set()).update(_factors(node.value, {}))
    for node in nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
            continue
        if shape(node.right) in _factors(node.left, named):
            yield id(node)


def _factors(value: ast.expr, named: dict[str, set[str]]) -> Iterator[str]:
    """The factors of the arguments of smooth maxima that a value is computed from."""
    for node in walk(value):
        if isinstance(node, ast.Name):
            yield from named.get(node.id, ())
        elif isinstance(node, ast.Call) and _is_smooth(node) and node.args:
            argument = node.args[0]
            if isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Mult):
                yield shape(argument.left)
                yield shape(argument.right)


def _is_smooth(call: ast.Call) -> bool:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in _SMOOTH
