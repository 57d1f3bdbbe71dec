"""Numbers of batches that an object of the program's own adds up, a meter; pure syntax.

`meter.update(loss)` or `meter += loss` in a loop, and `meter.total / len(data)` or
`meter.result(data)` after it, with the class in the same file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trueloop.doctor.model.batch_totals import (
    DividedTotal,
    always,
    forms_of,
    function_around,
    is_multiplied,
    is_same,
    length_of,
    may_be_left_out,
)
from trueloop.doctor.model.nodes import last_part, walk
from trueloop.doctor.model.variables import names_of, stores


class _Meter(NamedTuple):
    name: str
    """The variable."""
    total: str
    """The attribute with the sum."""
    methods: dict[str, ast.FunctionDef]


class _Division(NamedTuple):
    at: ast.expr
    """In the function with the loop: the quotient, or the call of the method that has it."""
    quotient: ast.BinOp
    by: ast.expr
    """In the words of the function with the loop."""


def metered_total(tree: ast.Module, loop: ast.For, call: ast.Call) -> DividedTotal | None:
    """The division, after `loop`, of what a meter has added up of the numbers that `call` computes
    in it: the only one there is."""
    definition = function_around(tree, loop)
    stored = stores(definition)
    meter = _meter(tree, loop, call, stored)
    if meter is None:
        return None
    nodes = [each for each in walk(definition) if isinstance(each, ast.expr)]
    after = [each for each in nodes if each.lineno > (loop.end_lineno or 0)]
    found = [*_divided_here(after, meter), *_divided_by_methods(after, meter)]
    if len(found) != 1 or may_be_left_out(definition, loop, found[0].at):
        return None
    counted = length_of(found[0].by, stored)
    if counted is None or any(is_multiplied(tree, each) for each in found[0][:2]):
        return None
    return DividedTotal(found[0].quotient, counted)


def _meter(
    tree: ast.Module, loop: ast.For, call: ast.Call, stored: dict[str, list[ast.expr | None]]
) -> _Meter | None:
    """The object that each turn gives the number to, by a statement of the loop itself."""
    given = list(_given(loop, forms_of(call, stored)))
    if len(given) != 1:
        return None
    name, method = given[0]
    values = stored.get(name, [])
    made = next((each for each in values if isinstance(each, ast.Call)), None)
    if made is None or len(values) != 1 + (method == "__iadd__"):
        return None
    methods = {
        each.name: each
        for cls in tree.body
        if isinstance(cls, ast.ClassDef) and cls.name == last_part(made.func)
        for each in cls.body
        if isinstance(each, ast.FunctionDef)
    }
    total = _added_by(methods, method)
    return _Meter(name, total, methods) if total else None


def _given(loop: ast.For, numbers: list[ast.expr]) -> Iterator[tuple[str, str]]:
    """Variables and their methods that get the number: `meter.update(loss)`, `meter += loss`."""
    for statement in always(loop.body):
        target: ast.expr | None = None
        value: ast.expr | None = None
        method = "__iadd__"
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
            target, value = statement.target, statement.value
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            function, arguments = statement.value.func, statement.value.args
            if isinstance(function, ast.Attribute) and len(arguments) == 1:
                target, value, method = function.value, arguments[0], function.attr
        if isinstance(target, ast.Name) and any(is_same(value, each) for each in numbers if value):
            yield target.id, method


def _added_by(methods: dict[str, ast.FunctionDef], method: str) -> str:
    """The attribute that a method adds its argument to, and that nothing else changes but what sets
    it to zero."""
    parameters = names_of(methods[method].args) if method in methods else []
    if len(parameters) < 2:
        return ""
    changes = [
        (each, target)
        for definition in methods.values()
        for each in walk(definition)
        for target in _targets(each)
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    ]
    added = [
        target.attr
        for each, target in changes
        if any(each is statement for statement in always(methods[method].body))
        and isinstance(each, ast.AugAssign)
        and isinstance(each.op, ast.Add)
        and is_same(each.value, ast.Name(parameters[1]))
    ]
    total = added[0] if len(added) == 1 else ""
    others = [each for each, target in changes if target.attr == total]
    zeros = [
        each
        for each in others
        if isinstance(each, ast.Assign | ast.AnnAssign)
        and isinstance(each.value, ast.Constant)
        and each.value.value == 0
    ]
    return total if len(others) == len(zeros) + 1 else ""


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else []


def _divided_here(nodes: list[ast.expr], meter: _Meter) -> Iterator[_Division]:
    """`meter.total / ...`"""
    for node in nodes:
        by = _divisor(node, f"{meter.name}.{meter.total}")
        if isinstance(node, ast.BinOp) and by is not None:
            yield _Division(node, node, by)


def _divisor(node: ast.expr | None, total: str) -> ast.expr | None:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
        return None
    return node.right if ast.unparse(node.left) == total else None


def _divided_by_methods(nodes: list[ast.expr], meter: _Meter) -> Iterator[_Division]:
    """`meter.result(data)`, whose method returns `self.total / ...`."""
    for node in nodes:
        function = node.func if isinstance(node, ast.Call) else None
        if not isinstance(node, ast.Call) or not isinstance(function, ast.Attribute):
            continue
        method = meter.methods.get(function.attr)
        if ast.unparse(function.value) != meter.name or method is None or node.keywords:
            continue
        own, *parameters = names_of(method.args) or [""]
        values = dict(zip(parameters, node.args, strict=False))
        for statement in always(method.body):
            value = statement.value if isinstance(statement, ast.Return) else None
            by = _divisor(value, f"{own}.{meter.total}")
            if isinstance(value, ast.BinOp) and by is not None:
                yield _Division(node, value, _in_words_of_the_caller(by, values))


def _in_words_of_the_caller(node: ast.expr, values: dict[str, ast.expr]) -> ast.expr:
    """An expression of a method with its parameters replaced by what they are given."""
    copy = ast.parse(ast.unparse(node), mode="eval")
    _Replaced(values).visit(copy)
    return copy.body


class _Replaced(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node)
