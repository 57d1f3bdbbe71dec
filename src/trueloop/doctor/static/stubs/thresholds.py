"""Scores that are compared with a bound."""

from __future__ import annotations

import ast
from typing import Any

from trueloop.doctor.model.things import Tensor
from trueloop.doctor.model.value_events import ComparedWithHalf
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.values import constant


def notice_threshold(m: Interpreter, sign: ast.cmpop, left: Any, right: Any, node: ast.AST) -> None:
    """`outputs > 0.5`, or `0.5 < outputs`."""
    if not isinstance(sign, (ast.Gt, ast.GtE, ast.Lt, ast.LtE)):
        return
    tensor, bound = (left, right) if isinstance(left, Tensor) else (right, left)
    if constant(bound) == 0.5 and tensor.activation is not None:
        above = isinstance(sign, (ast.Gt, ast.GtE)) is (tensor is left)
        m.emit(ComparedWithHalf, node, tensor=tensor, how="above" if above else "below")
