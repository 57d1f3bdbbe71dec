"""The nodes of a syntax tree, as `ast.walk` gives them, in half its time, and what loops show."""

from __future__ import annotations

import ast
from typing import TypeGuard

_PLAIN = frozenset(
    "id attr arg name asname kind level module type_comment is_async simple conversion rest"
    " kwd_attrs".split()
)
"""Fields that never contain a node."""


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each kind of node that contain a node, a list of nodes, or None."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        found = self[kind] = tuple(name for name in kind._fields if name not in _PLAIN)
        return found


FIELDS = _Fields(dict.fromkeys((ast.Constant, ast.MatchSingleton, ast.Global, ast.Nonlocal), ()))


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all nodes in it, level by level."""
    found = [node]
    for each in found:  # it grows meanwhile
        names = FIELDS[type(each)]
        if not names:
            continue
        fields = vars(each)
        for name in names:
            value = fields.get(name)
            if value is None:
                continue
            if type(value) is list:
                found += [part for part in value if part is not None] if None in value else value
            else:
                found.append(value)
    return found


def last_part(name: ast.AST) -> str:
    """`relu` of `functional.relu` and of `relu`; empty for anything but a dotted name."""
    if isinstance(name, ast.Attribute):
        return name.attr
    return name.id if isinstance(name, ast.Name) else ""


def streams_taken(iterable: ast.expr) -> tuple[list[ast.expr], ast.expr] | None:
    """The streams that a loop takes the next few of, and how many: `islice(batches, 4)`,
    `zip(range(4), batches)`; None for other loops."""
    if not isinstance(iterable, ast.Call) or iterable.keywords or len(iterable.args) < 2:
        return None
    function, given = iterable.func, iterable.args
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    counts = [each for each in given if _is_count(each)]
    streams: list[ast.expr] = [
        each for each in given if isinstance(each, (ast.Name, ast.Attribute))
    ]
    if name == "islice" and len(given) == 2 and given[0] in streams:
        return [given[0]], given[1]
    if name == "zip" and len(counts) == 1 and len(streams) == len(given) - 1:
        return streams, counts[0].args[0]
    return None


def _is_count(node: ast.expr) -> TypeGuard[ast.Call]:
    """`range(n)`."""
    return (
        isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "range"
        and len(node.args) == 1
    )


def calls_its_elements(loop: object) -> bool:
    """A loop only calls what it goes over, or a method of it: `for call in handlers: call()`."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    names = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    return all(_calls_one_of(each, names) for each in loop.body)


def _calls_one_of(statement: ast.stmt, names: set[str]) -> bool:
    if isinstance(statement, ast.If):
        return all(_calls_one_of(each, names) for each in (*statement.body, *statement.orelse))
    called = statement.value if isinstance(statement, ast.Expr) else None
    function = called.func if isinstance(called, ast.Call) else None
    owner = function.value if isinstance(function, ast.Attribute) else function
    return isinstance(owner, ast.Name) and owner.id in names


def cut_at(loop: ast.AST) -> int | None:
    """The turns after which a loop ends by their count, `if i == 3: break`; None where it has no
    such test."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return None
    if isinstance(loop.body[-1], ast.Break):
        return 1
    counter = _counter(loop)
    for each in loop.body if counter else ():
        test = each.test if isinstance(each, ast.If) else None
        if not isinstance(each, ast.If) or not isinstance(each.body[-1], ast.Break):
            continue
        if not isinstance(test, ast.Compare) or ast.dump(test.left) != counter:
            continue
        limit = getattr(test.comparators[0], "value", None)
        if type(limit) is int and isinstance(test.ops[0], (ast.Eq, ast.GtE, ast.Gt)):
            return limit + 1
    return None


def _counter(loop: ast.For | ast.AsyncFor) -> str:
    """The name or attribute that counts the turns of a loop over `enumerate(...)`, as it is read
    (`ast.dump`); empty for other loops."""
    counts = any(getattr(each, "id", "") == "enumerate" for each in walk(loop.iter))
    first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and counts else None
    return "" if first is None else ast.dump(first).replace("ctx=Store()", "ctx=Load()")
