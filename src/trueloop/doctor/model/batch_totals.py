"""Where source adds up a number of each batch, and divides the total by a length; pure syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trueloop.doctor.model.nodes import last_part, walk
from trueloop.doctor.model.variables import stores

_WRAPPERS = frozenset("enumerate tqdm trange track".split())
_SAME = frozenset("item detach cpu data".split())
"""Attributes of a tensor that have the same value: `loss.item()`, `loss.data`."""


class DividedTotal(NamedTuple):
    """`total / len(counted)`, or `total /= len(counted)`."""

    quotient: ast.BinOp | ast.AugAssign
    counted: ast.expr


def iterated(loop: ast.For) -> ast.expr:
    """The iterable of a loop, without `enumerate` and progress bars."""
    node = loop.iter
    while isinstance(node, ast.Call) and node.args and last_part(node.func) in _WRAPPERS:
        node = node.args[0]
    return node


def divided_total(tree: ast.Module, loop: ast.For, call: ast.Call) -> DividedTotal | None:
    """The division, after the loop, of the total of the numbers that a call in it computes: the
    only use of them in arithmetic, and made whenever the loop is."""
    definition = function_around(tree, loop)
    stored = stores(definition)
    total = _total(definition, loop, call, stored)
    if total is None:
        return None
    name, form = total
    found = [
        node
        for node in walk(definition)
        if isinstance(node, (ast.BinOp, ast.AugAssign))
        and isinstance(node.op, ast.Div)
        and node.lineno > (loop.end_lineno or 0)
        and ast.unparse(node.left if isinstance(node, ast.BinOp) else node.target) == form
    ]
    if len(found) != 1:
        return None
    quotient = found[0]
    divided = isinstance(quotient, ast.AugAssign)
    if stored.get(name, []).count(None) != divided + (form == name):
        return None
    if may_be_left_out(definition, loop, quotient) or is_multiplied(tree, quotient):
        return None
    by = quotient.value if isinstance(quotient, ast.AugAssign) else quotient.right
    counted = length_of(by, stored)
    return DividedTotal(quotient, counted) if counted is not None else None


def forms_of(call: ast.Call, stored: dict[str, list[ast.expr | None]]) -> list[ast.expr]:
    """A call, and the variable that holds its result and nothing else."""
    held = [each for each, values in stored.items() if values == [call]]
    return [call, *map(ast.Name, held[:1])]


def function_around(tree: ast.Module, loop: ast.For) -> ast.AST:
    """The innermost function that a loop is in, or the file."""
    found: ast.AST = tree
    for node in walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        begun = getattr(found, "lineno", 0)
        if begun < node.lineno <= loop.lineno <= (node.end_lineno or 0):
            found = node
    return found


def _total(
    definition: ast.AST, loop: ast.For, call: ast.Call, stored: dict[str, list[ast.expr | None]]
) -> tuple[str, str] | None:
    """The variable that the number is added to, and how its total is written: `total`, or
    `sum(losses)`."""
    name = next(filter(None, (_added(loop, each) for each in forms_of(call, stored))), None)
    if name is None:
        return None
    begins = [each for each in stored.get(name, []) if each is not None]
    if not begins:
        return None
    if all(isinstance(each, ast.List) and not each.elts for each in begins):
        uses = [
            node
            for node in walk(definition)
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == name
        ]
        return (name, f"sum({name})") if len(uses) == 1 else None
    zeros = all(isinstance(each, ast.Constant) and each.value == 0 for each in begins)
    return (name, name) if zeros else None


def _added(loop: ast.For, number: ast.expr) -> str | None:
    """The variable that each turn adds a number to, by a statement of the loop itself."""
    names: list[str] = []
    for statement in always(loop.body):
        target: ast.expr | None = None
        value: ast.expr | None = None
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
            target, value = statement.target, statement.value
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            function, given = statement.value.func, statement.value.args
            if isinstance(function, ast.Attribute) and function.attr == "append" and given:
                target, value = function.value, given[0]
        if isinstance(target, ast.Name) and value is not None and is_same(value, number):
            names.append(target.id)
    return names[0] if len(names) == 1 else None


def always(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run whenever a block does."""
    for statement in body:
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            yield from always(statement.body)
        else:
            yield statement


def is_same(value: ast.expr, number: ast.expr) -> bool:
    """`loss`, `loss.item()`, `float(loss)`."""
    value = _argument_of("float", value) or value
    while value is not number and not _is_name(value, number):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            value = value.func
        elif isinstance(value, ast.Attribute) and value.attr in _SAME:
            value = value.value
        else:
            return False
    return True


def _is_name(value: ast.expr, number: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id == getattr(number, "id", None)


def may_be_left_out(definition: ast.AST, loop: ast.For, quotient: ast.AST) -> bool:
    """A condition decides about the division that does not decide about the loop."""
    return any(
        _holds(node, quotient) and not _holds(node, loop)
        for node in walk(definition)
        if isinstance(node, (ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.While))
    )


def _holds(outer: ast.AST, node: ast.AST) -> bool:
    return any(each is node for each in walk(outer))


def is_multiplied(tree: ast.Module, quotient: ast.expr | ast.AugAssign) -> bool:
    """The file multiplies the quotient, which may make it whole again: by the batch size."""
    same = {ast.unparse(quotient)}
    if isinstance(quotient, ast.AugAssign):
        same = {ast.unparse(quotient.target)}
    else:
        for node in walk(tree):
            if isinstance(node, ast.Assign) and any(each is quotient for each in walk(node.value)):
                same.update(ast.unparse(each) for each in node.targets)
    for node in walk(tree):
        factors: list[ast.expr] = []
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Mult):
            factors = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.target]
        if any(ast.unparse(each) in same for each in factors):
            return True
    return False


def length_of(by: ast.expr, stored: dict[str, list[ast.expr | None]]) -> ast.expr | None:
    """The thing whose length is taken: `len(data)`, or a variable that holds it."""
    by = _argument_of("float", by) or by
    if isinstance(by, ast.Name):
        values = stored.get(by.id, [])
        by = values[0] if len(values) == 1 and values[0] is not None else by
    return _argument_of("len", _argument_of("float", by) or by)


def _argument_of(function: str, node: ast.expr) -> ast.expr | None:
    """The only argument, where this is a call of a function of this name."""
    if not isinstance(node, ast.Call) or last_part(node.func) != function:
        return None
    return node.args[0] if len(node.args) == 1 else None
