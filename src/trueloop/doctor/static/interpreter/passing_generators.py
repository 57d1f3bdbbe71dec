"""Generator functions that yield what they are given, element by element: a progress bar or a log
around a loader. A loop over one is a loop over what it was given."""

from __future__ import annotations

import ast

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.call_summaries import BEARS
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import CombinedIterable, Function, Value


def passed_on(
    m: Interpreter, function: Function, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """The elements that a call of such a function yields; None for other generator functions."""
    source = _source(function.node)
    if source is None:
        return None
    name, attribute = source
    given = argument(function, args, kwargs, name)
    if given is not None and attribute:
        given = m.attribute(given, attribute, function.node)
    return None if given is None else CombinedIterable("plain", [given])


def argument(
    function: Function, args: list[Value], kwargs: dict[str, Value], name: str
) -> Value | None:
    """The argument that a call gives a parameter, or its default."""
    spec = function.node.args
    names = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    defaults = dict(zip(reversed(names), reversed(function.defaults), strict=False))
    return {**defaults, **kwargs, **dict(zip(names, args, strict=False))}.get(name)


@once
def _source(function: ast.AST) -> tuple[str, str] | None:
    """The parameter whose elements a generator function yields unchanged: its name, and the
    attribute that the loop reads from it (`batches` of `self.batches`); empty for none."""
    if not isinstance(function, ast.FunctionDef):
        return None
    nodes = walk(function)
    loops = [each for each in function.body if isinstance(each, ast.For)]
    yields = [each for each in nodes if isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await))]
    if len(loops) != 1 or len(yields) != 1 or not isinstance(loops[0].target, ast.Name):
        return None
    (loop,), element = loops, loops[0].target.id
    handed = [each for each in loop.body if getattr(each, "value", None) is yields[0]]
    if len(handed) != 1 or not isinstance(handed[0], ast.Expr):
        return None
    if not isinstance(yields[0], ast.Yield) or getattr(yields[0].value, "id", "") != element:
        return None
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    held = loop.iter.value if isinstance(loop.iter, ast.Attribute) else loop.iter
    over = getattr(held, "id", "")
    if over not in names or _does_more(nodes, {over, element}):
        return None
    return over, getattr(loop.iter, "attr", "")


def _does_more(nodes: list[ast.AST], names: set[str]) -> bool:
    """It leaves its loop, replaces what it goes through, or does what rules look at."""
    stored = 0
    for each in nodes:
        if isinstance(each, (ast.Break, ast.Continue, ast.Return, ast.Raise)):
            return True
        if isinstance(each, ast.Name):
            if each.id in BEARS:
                return True
            stored += each.id in names and not isinstance(each.ctx, ast.Load)
        elif isinstance(each, ast.Attribute) and each.attr in BEARS:
            return True
    return stored != 1  # the loop's own variable
