"""Statements that multiply a variable by a decay: `t = max(t * exp(-rate * step), low)`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trueloop.doctor.model.nodes import walk

_LIMITS = frozenset("max min maximum minimum clip clamp float".split())
_POWERS = frozenset("pow power".split())
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Decay:
    """A variable is multiplied by a function of these expressions."""

    variable: str
    of: list[ast.expr]


def decay_of(
    statement: ast.Assign | ast.AugAssign, functions: Mapping[str, Sequence[FunctionNode]]
) -> Decay | None:
    """The decay that a statement multiplies its own variable by; None if there is none."""
    if isinstance(statement, ast.AugAssign):
        if not isinstance(statement.op, ast.Mult):
            return None
        found = _decaying_factors(statement.value, _is_rate(statement.target))
        return Decay(ast.unparse(statement.target), found) if found else None
    if len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    for value in _without_limits(statement.value):
        if isinstance(value, ast.Call):
            return _of_function(value, target, functions)
        for product in _without_floor(value):
            found = _decaying_factors(product, _is_rate(target))
            if found:
                variable = ast.unparse(target)
                if any(variable in _minuends(each) for each in _factors(product)):
                    return Decay(variable, found)
    return None


def _without_floor(node: ast.expr) -> list[ast.expr]:
    """`low + (value - low) * decay` as its product."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [node.left, node.right]
    return [node]


def _minuends(node: ast.expr) -> list[str]:
    """A factor, and for `value - low` also the value: what falls to a floor."""
    found = [ast.unparse(node)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        found.append(ast.unparse(node.left))
    return found


def _decaying_factors(value: ast.expr, is_rate: bool) -> list[ast.expr]:
    return [part for each in _factors(value) for part in _decaying(each, is_rate)]


def _of_function(
    call: ast.Call, target: ast.expr, functions: Mapping[str, Sequence[FunctionNode]]
) -> Decay | None:
    """`ratio = schedule(ratio, epoch)`, of a function that returns its argument multiplied so."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    defined = functions.get(name, ())
    if len(defined) != 1 or len(defined[0].body) != 1 or call.keywords:
        return None
    returned = defined[0].body[0]
    if not isinstance(returned, ast.Return) or returned.value is None:
        return None
    variable = ast.unparse(target)
    given = dict(zip((each.arg for each in defined[0].args.args), call.args, strict=False))
    for parameter, argument in given.items():
        if ast.unparse(argument) == variable:
            inner = decay_of(ast.Assign([ast.Name(parameter)], returned.value), {})
            names = _names(inner.of) if inner is not None else set()
            counts = [each for key, each in given.items() if key in names]
            return Decay(variable, counts) if counts else None
    return None


def _names(nodes: Iterable[ast.expr]) -> set[str]:
    return {each.id for node in nodes for each in walk(node) if isinstance(each, ast.Name)}


def _is_rate(target: ast.expr) -> bool:
    """It is the learning rate of a parameter group."""
    return isinstance(target, ast.Subscript) and getattr(target.slice, "value", None) == "lr"


def _without_limits(node: ast.expr) -> list[ast.expr]:
    """`max(low, value)` as its arguments."""
    if isinstance(node, ast.Call) and _last(node.func) in _LIMITS:
        return [inner for each in node.args for inner in _without_limits(each)]
    return [node] if isinstance(node, (ast.Call, ast.BinOp)) else []


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node


def _decaying(node: ast.expr, is_rate: bool) -> list[ast.expr]:
    """The expressions that a decay is a function of: an exponent, or a share of the steps that a
    learning rate is multiplied by."""
    base: ast.expr | None = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = node.left, node.right
    elif isinstance(node, ast.Call) and _last(node.func) in _POWERS and len(node.args) == 2:
        base, exponent = node.args
    elif isinstance(node, ast.Call) and _last(node.func) == "exp" and len(node.args) == 1:
        return [node.args[0]] if _is_negative(node.args[0]) else []
    else:
        return []
    if isinstance(base, ast.Constant):
        falls = isinstance(base.value, (int, float)) and 0 < base.value < 1
        return [exponent] if falls else []
    if isinstance(base, (ast.Name, ast.Attribute, ast.Subscript)):
        return [exponent]
    is_share = isinstance(base, ast.BinOp) and isinstance(base.op, ast.Sub)
    return [base] if is_rate and is_share else []


def _is_negative(node: ast.expr) -> bool:
    """`-rate * step`."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        node = node.left
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
