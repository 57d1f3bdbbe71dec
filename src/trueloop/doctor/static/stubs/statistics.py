"""Means, deviations and ranges of data along its samples, and data that is scaled with them."""

from __future__ import annotations

import ast

from trueloop.doctor.model.table_events import ScaledByHand
from trueloop.doctor.model.things import Tensor
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.values import Constant, Unknown, Value, constant

_NAMES = frozenset("mean std var min max amin amax quantile percentile nanmean nanstd".split())
_KEEP = frozenset("clamp clamp_min clip maximum where to float astype reshape view sqrt".split())


def notice(
    m: Interpreter,
    data: Value,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    result: Value,
) -> None:
    """The result may be a statistic over the samples of data, outside of loops."""
    if not isinstance(result, (Tensor, Unknown)) or m.batch_turn() is not None or m.inside_models:
        return
    if name in _NAMES:
        axis = kwargs.get("dim", kwargs.get("axis", args[-1] if args else None))
        if axis is None or constant(axis) == 0:
            result.statistic_of = data
    elif name in _KEEP:
        found = [_source(each) for each in (data, *args)]
        result.statistic_of = next((each for each in found if each is not None), None)


def notice_arithmetic(
    m: Interpreter, sign: ast.operator, left: Value, right: Value, result: Value, node: ast.AST
) -> None:
    """Data minus its mean, or divided by its deviation; a deviation and a small number."""
    of_left, of_right = _source(left), _source(right)
    if of_left is None and of_right is None:
        return
    if not isinstance(result, (Tensor, Unknown)):
        return
    if of_left is not None and (of_right is of_left or isinstance(right, Constant)):
        result.statistic_of = of_left
    elif of_right is not None and left is of_right and isinstance(sign, (ast.Sub, ast.Div)):
        m.emit(ScaledByHand, node, data=of_right, result=result)


def _source(value: Value) -> Value | None:
    return value.statistic_of if isinstance(value, (Tensor, Unknown)) else None
