"""Branches that only the first iterations of a training take: `if step < warmup:`."""

from __future__ import annotations

import ast
import re

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import nodes_of, once, written

_COUNTER = re.compile(
    r"(^|[._])((global|current|cur|train)_)?(step|iter|iteration|epoch|update)"
    r"(_(idx|index|num|number|count|i))?$"
)
"""Names of counters that a function gets."""
_COUNTED = frozenset({"range", "enumerate", "trange"})


def in_first_turns(m: Interpreter, node: ast.AST) -> bool:
    """A branch around `node` that has no `else` is taken as long as a counter is below a bound."""
    tree, line = m.modules[-1].tree, getattr(node, "lineno", 0)
    return any(
        not each.orelse
        and each.body[0].lineno <= line <= (each.body[-1].end_lineno or 0)
        and (counter := _below_a_bound(each.test)) is not None
        and any(_counts(part, tree) for part in walk(counter) if _is_name(part))
        for each in nodes_of(tree, ast.If)
    )


def _below_a_bound(test: ast.expr) -> ast.expr | None:
    """The side of a comparison that is the smaller one."""
    if not isinstance(test, ast.Compare) or len(test.ops) > 1:
        return None
    if isinstance(test.ops[0], ast.Lt | ast.LtE):
        return test.left
    return test.comparators[0] if isinstance(test.ops[0], ast.Gt | ast.GtE) else None


def _counts(name: ast.AST, tree: ast.Module) -> bool:
    return written(name) in _counters(tree) or bool(_COUNTER.search(written(name)))


@once
def _counters(tree: ast.Module) -> frozenset[str]:
    """Counters of turns: the variable of a loop over a range or an enumeration, what a statement
    adds one to, and what is computed of these (`i + epoch * len(loader)`)."""
    turned = [each for each in nodes_of(tree, ast.For) if _numbers_turns(each.iter)]
    found = {_first(each.target) for each in turned}
    for added in nodes_of(tree, ast.AugAssign):
        if isinstance(added.op, ast.Add) and getattr(added.value, "value", None) == 1:
            found.add(written(added.target))
    for each in nodes_of(tree, ast.Assign):
        is_sum = isinstance(each.value, ast.BinOp) and isinstance(each.value.op, ast.Add | ast.Mult)
        if is_sum and any(written(part) in found for part in walk(each.value) if _is_name(part)):
            found.update(map(written, each.targets))
    return frozenset(found)


def _is_name(part: ast.AST) -> bool:
    return isinstance(part, ast.Name | ast.Attribute)


def _numbers_turns(iterable: ast.expr) -> bool:
    return isinstance(iterable, ast.Call) and last_name(iterable.func) in _COUNTED


def _first(target: ast.expr) -> str:
    """`i` of `for i, (x, y) in enumerate(...)`."""
    return written(target.elts[0] if isinstance(target, ast.Tuple) else target)
