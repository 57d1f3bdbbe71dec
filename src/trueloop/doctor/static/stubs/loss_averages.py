"""Factors of losses, and the average of several losses of one batch: `(first + second) / 2`."""

from __future__ import annotations

import ast

from trueloop.doctor.model.things import Tensor
from trueloop.doctor.static.interpreter.values import Constant, Value


def averages(sign: ast.operator, left: Value, right: Value, node: ast.AST) -> int:
    """How many losses, each the mean of the batch, are added and divided by their number, as it is
    written: `(F.cross_entropy(a, y) + F.cross_entropy(b, y)) / 2`; 0 for anything else."""
    total, number = (left, right) if isinstance(left, Tensor) else (right, left)
    if not isinstance(total, Tensor) or not isinstance(number, Constant):
        return 0
    if total.terms is None or (isinstance(sign, ast.Div) and number is left):
        return 0
    sides = (getattr(node, "left", None), getattr(node, "right", None))
    value = number.value
    written = any(isinstance(each, ast.Constant) for each in sides)
    if not written or isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        return 0
    count = _losses_added(total, 4)
    return (
        count if count > 1 and value == (count if isinstance(sign, ast.Div) else 1 / count) else 0
    )


def _losses_added(value: Value, depth: int) -> int:
    """How many undivided means a sum consists of; 0 if there is anything else in it."""
    if not isinstance(value, Tensor) or not value.is_loss or not depth:
        return 0
    if value.reduced != "mean" or value.divided is not False:
        return 0
    if not isinstance(value.terms, tuple):
        return 1
    parts = [_losses_added(each, depth - 1) for each in value.terms]
    return sum(parts) if all(parts) else 0


def is_literal(node: ast.AST) -> bool:
    """The right side of an operation is a number as it is written."""
    right = node.value if isinstance(node, ast.AugAssign) else getattr(node, "right", None)
    return isinstance(right, ast.Constant)
