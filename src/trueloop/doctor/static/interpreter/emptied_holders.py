"""Sums and lists that a loop lets go of now and then: at a log interval, at the end of a window."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.syntax import nodes_of, once, written

_SHRINK = frozenset({"clear", "pop", "popleft"})
_EMPTY = frozenset("list dict set deque defaultdict OrderedDict Counter tensor float int".split())


def is_let_go(m: Interpreter, node: ast.AST, holder: ast.expr) -> bool:
    """A loop around `node` also empties, shortens or replaces the holder that `node` adds to.
    The turn in which it does so may not be among those that are gone through."""
    line = getattr(node, "lineno", 0)
    names = set(_with_owners(holder))
    loops = (each for kind in _LOOPS for each in nodes_of(m.modules[-1].tree, kind))
    around = (each for each in loops if each.lineno <= line <= (each.end_lineno or 0))
    return any(not names.isdisjoint(_let_go(each)) for each in around)


_LOOPS: tuple[type[ast.For | ast.AsyncFor | ast.While], ...] = (ast.For, ast.AsyncFor, ast.While)


def _with_owners(holder: ast.expr) -> Iterator[str]:
    """`log["loss"]` and `log`."""
    yield written(holder)
    while isinstance(holder, ast.Subscript):
        holder = holder.value
        yield written(holder)


@once
def _let_go(loop: ast.For | ast.AsyncFor | ast.While) -> frozenset[str]:
    """Holders that the statements of a loop empty or shorten."""
    return frozenset(name for node in walk(loop) for name in _emptied_by(node))


def _emptied_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _replaced(target, node.value)
    elif isinstance(node, ast.Delete):
        for target in node.targets:
            yield written(target.value if isinstance(target, ast.Subscript) else target)
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _SHRINK:
        assert isinstance(node.func, ast.Attribute)
        yield written(node.func.value)


def _replaced(target: ast.expr, value: ast.expr) -> Iterator[str]:
    """`total = 0`, `log[name] = []`, `items[:] = []`, `items = items[-10:]`, `a, b = 0, 0`."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for each, given in zip(target.elts, value.elts, strict=False):
            yield from _replaced(each, given)
    elif _is_empty(value) or _is_part(target, value):
        yield written(target)
        if isinstance(target, ast.Subscript):
            yield written(target.value)


def _is_empty(value: ast.expr) -> bool:
    """Zero, None, an empty container, or zeros."""
    if isinstance(value, ast.Call):
        name = written(value.func).rpartition(".")[2]
        return name == "zeros" or (name in _EMPTY and all(map(_is_plain, value.args)))
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return not value.elts
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and not value.keys)


def _is_plain(argument: ast.expr) -> bool:
    """A constant, or the type of what a dictionary holds."""
    return isinstance(argument, ast.Constant) or written(argument) in _EMPTY


def _is_part(target: ast.expr, value: ast.expr) -> bool:
    """Some of its own elements: `items[-10:]`."""
    if not (isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice)):
        return False
    return written(value.value) == written(target)
