"""Whether each turn of an inner loop draws its own batch, as its source says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from trueloop.doctor.live.frames.source_map import SourceFile, source_of
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.nodes import last_part, streams_taken, walk
from trueloop.doctor.model.window_makers import LIBRARY, windows_in

_LIBRARIES = frozenset("torch F nn np numpy random math copy jnp".split())
"""Libraries whose functions may give noise on the one batch of the update."""
_AROUND = ("enumerate", "tqdm")
_DRAWS = re.compile("next|sample|draw|fetch|get_?(next|batch|micro)")
"""Names of methods that draw."""


@lru_cache(maxsize=8192)
def draws_batch(place: Location) -> bool:
    """All data in the arguments of the call at a place was drawn in the same turn of the innermost
    loop around it (`x, y = get_batch()`, `next(stream)`, `for x, y in islice(stream, 4)`), from
    nothing that the turn of the loop around that one has drawn; or in the same call of a function
    without a loop, from nothing that it was given."""
    source = source_of(place.path)
    call = source.call_at(place) if place.end_line else None
    if call is None:
        return False
    loops = source.loops_around(place.line)
    if not loops:
        function = _function_around(source, call)
        own, outside = set[str](), set(_parameters(function))
        inside = list(_assignments(function.body if function is not None else ()))
    elif isinstance(inner := loops[-1], ast.For):
        own = set(_bound(inner.target))
        outside = set(_bound_around(source, inner, loops[-2] if len(loops) > 1 else None))
        inside = list(_assignments(inner.body))
        if streams_taken(_unwrapped(inner.iter)) is not None or goes_through_window(source, inner):
            inside.append((sorted(own), ast.Call(ast.Name("next", ast.Load()), [], [])))
            own = set()
    else:
        return False
    drawn = _drawn(inside, outside | own, own)
    given = {
        name
        for part in (*call.args, *(keyword.value for keyword in call.keywords))
        for name in _names(part)
    }
    bound = {name for targets, _ in inside for name in targets}
    return bool(given & drawn) and not given & ((bound | outside | own) - drawn)


@lru_cache(maxsize=8192)
def goes_through_window(source: SourceFile, inner: ast.For) -> bool:
    """A loop goes through a window of micro-batches: the loop around it, or around the call of its
    function, takes it from a generator of such windows, or gathers it."""
    name = getattr(_unwrapped(inner.iter), "id", "")
    if not name:
        return False
    if _is_window(source, name, inner.lineno):
        return True
    function = _function_around(source, inner)
    parameters = [each.arg for each in function.args.args] if function is not None else []
    if function is None or name not in parameters:
        return False
    position = parameters.index(name) - (parameters[0] == "self")
    calls = [
        each
        for each in source.nodes
        if isinstance(each, ast.Call) and last_part(each.func) == function.name
    ]
    given = [(each.args[position : position + 1], each.lineno) for each in calls]
    return bool(calls) and all(
        part and _is_window(source, getattr(part[0], "id", ""), line) for part, line in given
    )


def _is_window(source: SourceFile, name: str, line: int) -> bool:
    """A loop around a line binds a name to windows, or gathers one under it."""
    if not name:
        return False
    loops = source.loops_around(line)
    for loop in loops:
        if isinstance(loop, ast.For) and name in _bound(loop.target):
            return _makes_windows(source, _unwrapped(loop.iter))
    return any(_gathers(loop, name) for loop in loops)


def _gathers(loop: ast.For | ast.AsyncFor | ast.While, name: str) -> bool:
    """Each turn binds a name to the next few of a stream; or the loop adds its batches to a list,
    which it empties."""
    test = loop.test if isinstance(loop, ast.While) else None
    bound = [value for targets, value in _assignments(loop.body) if name in targets]
    if isinstance(test, ast.NamedExpr) and test.target.id == name:
        bound.append(test.value)
    if bound and all(map(_takes_next_few, bound)):
        return True
    emptied = any(isinstance(each, ast.List) and not each.elts for each in bound)
    added: set[str] = set()
    for statement in loop.body:
        for each in walk(statement):
            function = each.func if isinstance(each, ast.Call) else None
            if isinstance(function, ast.Attribute) and ast.unparse(function.value) == name:
                emptied |= function.attr == "clear"
                if isinstance(each, ast.Call) and function.attr == "append":
                    added.update(map(ast.unparse, each.args))
    return emptied and isinstance(loop, ast.For) and added == {ast.unparse(loop.target)}


def _takes_next_few(value: ast.expr) -> bool:
    """`list(islice(stream, 4))`, `[next(stream) for _ in range(4)]`."""
    if isinstance(value, ast.ListComp):
        counts = last_part(getattr(value.generators[0].iter, "func", value)) == "range"
        return counts and last_part(getattr(value.elt, "func", value)) == "next"
    listed = isinstance(value, ast.Call) and last_part(value.func) in ("list", "tuple")
    if not isinstance(value, ast.Call) or not listed or len(value.args) != 1:
        return False
    return streams_taken(value.args[0]) is not None


def _makes_windows(source: SourceFile, iterable: ast.expr) -> bool:
    name = last_part(iterable.func) if isinstance(iterable, ast.Call) else ""
    if name in LIBRARY:
        return True
    makers = [
        each
        for each in source.nodes
        if isinstance(each, (ast.FunctionDef, ast.ClassDef)) and each.name == name
    ]
    return bool(makers) and all(windows_in(_iteration(each)) for each in makers)


def _iteration(maker: ast.AST) -> ast.AST:
    """The `__iter__` of a class; a function itself."""
    body = maker.body if isinstance(maker, ast.ClassDef) else []
    return next((each for each in body if getattr(each, "name", "") == "__iter__"), maker)


def _unwrapped(iterable: ast.expr) -> ast.expr:
    """The argument of `enumerate(…)` or `tqdm(…)`."""
    while isinstance(iterable, ast.Call) and last_part(iterable.func) in _AROUND:
        iterable = iterable.args[0] if iterable.args else ast.Constant(None)
    return iterable


def _drawn(
    assignments: list[tuple[list[str], ast.expr]], others: set[str], turns: set[str]
) -> set[str]:
    """The names that are bound only to new batches, and to what is made only of them."""
    drawn: set[str] = set()
    for _ in range(len(assignments) + 1):
        before = set(drawn)
        for targets, value in assignments:
            if _is_fetch(value, others, drawn, turns) or _is_made_of(value, others, drawn):
                drawn.update(targets)
        if drawn == before:
            break
    for targets, value in assignments:
        if not (_is_fetch(value, others, drawn, turns) or _is_made_of(value, others, drawn)):
            drawn.difference_update(targets)
    return drawn


def _is_fetch(value: ast.expr, others: set[str], drawn: set[str], turns: set[str]) -> bool:
    if not isinstance(value, ast.Call):
        return False
    root: ast.expr = value.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    if value.func is root and root.id == "next":
        return True
    known = others - drawn
    if isinstance(value.func, ast.Attribute) and _DRAWS.match(value.func.attr):
        # Wherever the object is from, each call of such a method gives a different batch; what is
        # drawn from a task that the loop goes through is that task's.
        known = known - ({root.id} - turns)
    given = {name for part in ast.iter_child_nodes(value) for name in _names(part)}
    if isinstance(value.func, ast.Name):
        given.discard(root.id)
    return root.id not in _LIBRARIES and not given & known


def _is_made_of(value: ast.expr, others: set[str], drawn: set[str]) -> bool:
    names = set(_names(value))
    return bool(names & drawn) and not names & (others - drawn)


def _bound_around(
    source: SourceFile, inner: ast.For, outer: ast.For | ast.AsyncFor | ast.While | None
) -> Iterator[str]:
    """The names that are bound in a turn of the loop around the inner one; without such a loop, in
    the function, by its arguments too."""
    if outer is not None:
        body: list[ast.stmt] = outer.body
        if not isinstance(outer, ast.While):
            yield from _bound(outer.target)
    else:
        function = _function_around(source, inner)
        if function is None:
            return
        body = function.body
        yield from _parameters(function)
    for targets, _ in _assignments(body, without=inner):
        yield from targets


def _parameters(function: ast.FunctionDef | None) -> Iterator[str]:
    if function is not None:
        given = function.args
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs):
            if each.arg != "self":
                yield each.arg


def _function_around(source: SourceFile, inner: ast.AST) -> ast.FunctionDef | None:
    found = None
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef) and any(each is inner for each in walk(node)):
            found = node
    return found


def _assignments(
    body: Iterable[ast.stmt], without: ast.stmt | None = None
) -> Iterator[tuple[list[str], ast.expr]]:
    """Each assignment of a block, nested ones too: the names, and the value."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop(0)
        if node is without or isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Assign):
            yield [name for target in node.targets for name in _bound(target)], node.value
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            yield list(_bound(node.target)), node.value
        elif isinstance(node, ast.For):
            yield list(_bound(node.target)), node.iter
        waiting.extend(ast.iter_child_nodes(node))


def _bound(target: ast.expr) -> Iterator[str]:
    for node in walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _names(node: ast.AST) -> Iterator[str]:
    """The names that an expression reads, without those that its comprehensions bind."""
    own = {name for each in walk(node) if isinstance(each, ast.comprehension)
           for name in _bound(each.target)}  # fmt: skip
    for each in walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id not in own:
            yield each.id
