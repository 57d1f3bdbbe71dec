"""Syntax trees: parsing within bounds, and what is asked about a node more than once.

A run may come to the same statement thousands of times. What takes as long as the statement is
long (its text, a walk through it) is therefore computed once, and kept on the node.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.plain_forms import plain

Node = TypeVar("Node", bound=ast.AST)
Found = TypeVar("Found")

FRAMES = 12_000
"""Calls within calls that going through a program may need: `counting.NESTING` levels and the calls
between them."""


@contextmanager
def room(frames: int) -> Iterator[None]:
    """Let Python go so many calls deeper than here, wherever this is called from: what is too deep
    must not depend on it."""
    here, frame = 0, sys._getframe()
    while frame.f_back is not None:
        here, frame = here + 1, frame.f_back
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(here + frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def call_in_one_chunk(work: Callable[[], Found]) -> Found:
    """`work()`, with the frames of its calls in one block of memory. CPython maps 16 KB for frames
    at a time and unmaps them when the last of their frames returns: where a loop happens to call
    across that border, each call maps and unmaps memory, and a program took ten times as long to
    follow. For this function's frame CPython maps 4 MB; the frames below it use the rest."""
    return work()


call_in_one_chunk.__code__ = call_in_one_chunk.__code__.replace(co_stacksize=2**18 + 2**8)


def parse(text: str | bytes) -> ast.Module:
    """`ast.parse`, without its warnings about the user's strings, and with what has a plain form in
    that form. Raises `SyntaxError`, `ValueError` (null bytes), and `RecursionError` or
    `MemoryError` for what is nested too deeply, the same wherever it is called from."""
    if _takes_too_long(text):
        raise RecursionError
    with room(1_000), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    words = text if isinstance(text, str) else text.decode("latin-1")
    return plain(tree) if "getattr(" in words or "next(" in words else tree


_LONG_NAME = re.compile(r"\b(?:import|from)[ \t]+(?:\w++[ \t]*+\.[ \t]*+){1000}")


_FORMATTED = re.compile(r"\b[rR]?[fF][rR]?['\"]")


def _takes_too_long(text: str | bytes) -> bool:
    """Two things take Python's parser a time that grows with the square of their length, minutes in
    all, and nothing can interrupt it: the name of a module of thousands of parts, and (before 3.12)
    one formatted string of thousands."""
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    return any(
        _LONG_NAME.search(line) or (line.count("{") > 20_000 and _FORMATTED.search(line))
        for line in text.split("\n")
        if len(line) > 2_000
    )


def once(function: Callable[[Node], Found]) -> Callable[[Node], Found]:
    """Compute a function of a node once for each node."""
    name = f"_{function.__module__}_{function.__qualname__}"

    @functools.wraps(function)
    def remembered(node: Node) -> Found:
        try:
            found: Found = getattr(node, name)
        except AttributeError:
            found = function(node)
            setattr(node, name, found)
        return found

    return remembered


def place_of(node: ast.AST, path: str, function: str) -> Location:
    """Where a node of a file is, inside which function."""
    kept: Location | None = getattr(node, "_place", None)
    if kept is not None and kept.function == function and kept.path == path:
        return kept
    line = getattr(node, "lineno", 1)
    column = getattr(node, "col_offset", 0)
    found = Location(
        path,
        line,
        column + 1,
        getattr(node, "end_lineno", None) or line,
        (getattr(node, "end_col_offset", None) or column) + 1,
        function,
    )
    node._place = found  # type: ignore[attr-defined]
    return found


@once
def written(node: ast.AST) -> str:
    """The source of an expression, as `ast.unparse` writes it."""
    return ast.unparse(node)


@once
def shape(node: ast.AST) -> str:
    """A text that is equal for expressions that are written alike, whether read or assigned to."""
    return ast.dump(node).replace("Store()", "Load()")


@once
def names_bound(node: ast.expr) -> tuple[str, ...]:
    """The names that an assignment to `node` binds."""
    names = (each for each in walk(node) if isinstance(each, ast.Name))
    return tuple(each.id for each in names if isinstance(each.ctx, ast.Store))


@once
def has_or(test: ast.expr) -> bool:
    """A condition contains an `or`."""
    return any(isinstance(each, ast.Or) for each in walk(test))


@once
def nodes_by_kind(tree: ast.AST) -> dict[type[ast.AST], list[ast.AST]]:
    """All nodes of a file by their kind: it is walked once for all who look for some kinds."""
    found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    for node in walk(tree):
        found[type(node)].append(node)
    return dict(found)


def nodes_of(tree: ast.AST, kind: type[Node]) -> list[Node]:
    """The nodes of a kind in a file, level by level."""
    return nodes_by_kind(tree).get(kind, [])  # type: ignore[return-value]


@once
def size_of(node: ast.AST) -> int:
    """How many nodes it is made of."""
    return len(walk(node))


@once
def may_leave(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """A `break` or `return` may end this loop; those of inner loops and functions stay with
    them."""
    waiting: list[tuple[ast.AST, bool]] = [(statement, True) for statement in loop.body]
    while waiting:
        node, mine = waiting.pop()
        if isinstance(node, ast.Return) or (mine and isinstance(node, ast.Break)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.expr)):
            mine = mine and not isinstance(node, (ast.For, ast.AsyncFor, ast.While))
            waiting.extend((child, mine) for child in ast.iter_child_nodes(node))
    return False


@once
def returned_sum(loop: ast.AST) -> ast.Return | None:
    """The `return` that ends each turn of a loop with a value that the turns add up or collect, or
    that is divided by their number: a second turn never comes."""
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return None
    last = loop.body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    grown: set[str] = set()
    bound: set[str] = set()
    for node in walk(loop):
        if isinstance(node, (ast.Continue, ast.Yield, ast.YieldFrom)):
            return None
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            grown.add(node.target.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("append", "extend") and isinstance(node.func.value, ast.Name):
                grown.add(node.func.value.id)
        elif isinstance(node, ast.Assign):
            bound.update(name for target in node.targets for name in names_bound(target))
    grown -= bound
    names = {node.id for node in walk(last.value) if isinstance(node, ast.Name)}
    return last if not grown.isdisjoint(names) or _divides_by_turns(loop, last, names) else None


def _divides_by_turns(
    loop: ast.For | ast.AsyncFor | ast.While, last: ast.Return, names: set[str]
) -> bool:
    """The returned value, or one that this turn assigns for it, is divided by the length of the
    container that the loop goes through."""
    if isinstance(loop, ast.While):
        return False
    through = {
        written(node) for node in walk(loop.iter) if isinstance(node, ast.Name | ast.Attribute)
    }
    made = [
        each.value
        for each in loop.body
        if isinstance(each, ast.Assign)
        and any(not names.isdisjoint(names_bound(target)) for target in each.targets)
    ]
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and isinstance(node.right, ast.Call)
        and getattr(node.right.func, "id", "") == "len"
        and any(written(each) in through for each in node.right.args)
        for value in (last.value, *made)
        if value is not None
        for node in walk(value)
    )


_MOVES = frozenset("to cuda cpu float half double bfloat16 train eval".split())


@once
def layers_only_called(tree: ast.AST) -> frozenset[int]:
    """The calls, by identity, that make an object which is called and not kept: `Linear(3, 4)(x)`,
    or one under a local name that its function only calls."""
    found: set[int] = set()
    for call in nodes_of(tree, ast.Call):
        if isinstance(call.func, ast.Call):
            found.update(_made_in(call.func))
    for function in nodes_of(tree, ast.FunctionDef):
        found.update(_only_called(function))
    for coroutine in nodes_of(tree, ast.AsyncFunctionDef):
        found.update(_only_called(coroutine))
    return frozenset(found)


def _only_called(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[int]:
    made: dict[str, list[ast.expr]] = {}
    called: set[int] = set()
    used: set[str] = set()
    nodes = walk(function)
    for node in nodes:
        if isinstance(node, ast.Call):
            called.add(id(node.func))
            if isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
                called.add(id(node.func.value))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            made.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            used.update(node.names)
    if not made:
        return
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in called:
            used.add(node.id)
    for name in made.keys() - used:
        for value in made[name]:
            yield from _made_in(value)


def _made_in(node: ast.expr) -> Iterator[int]:
    """A call, and those of the parts of a `Sequential`."""
    if not isinstance(node, ast.Call):
        return
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr in _MOVES:
        yield from _made_in(function.value)
        return
    yield id(node)
    if getattr(function, "attr", getattr(function, "id", "")) == "Sequential":
        for each in node.args:
            yield from _made_in(each)


def stands_in(target: ast.expr, value: ast.expr) -> bool:
    """`total = total + loss`, `mean = (mean * n + loss) / m`: the old one is part of the new."""
    if isinstance(value, ast.IfExp):
        return stands_in(target, value.body) or stands_in(target, value.orelse)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        value = value.left
    is_sum = isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub))
    return is_sum and any(shape(target) == shape(each) for each in _weighted(value))


def _weighted(value: ast.expr) -> Iterator[ast.expr]:
    """The summands of a sum, without their weights."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
        yield from _weighted(value.left)
        yield from _weighted(value.right)
    elif isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        yield value.left
        if isinstance(value.op, ast.Mult):
            yield value.right
    else:
        yield value


@once
def tests_of_what_is_returned(tree: ast.AST) -> frozenset[int]:
    """The attributes in tests that decide only which values, computed before, a function returns:
    `if self.training: return masks, pose`, `return pose`. By the identity of their nodes."""
    found: set[int] = set()
    for node in walk(tree):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if not isinstance(body, list):  # of a conditional expression
                continue
            for number, each in enumerate(body):
                if isinstance(each, ast.If):
                    others = each.orelse or body[number + 1 : number + 2]
                    if _returns_at_once(each.body) and _returns_at_once(others):
                        parts = walk(each.test)
                        found |= {id(part) for part in parts if isinstance(part, ast.Attribute)}
    return frozenset(found)


def _returns_at_once(body: list[ast.stmt]) -> bool:
    """Nothing but a `return` of what there is."""
    if len(body) != 1 or not isinstance(body[0], ast.Return):
        return False
    computes = (ast.Call, ast.BinOp, ast.Await, ast.Lambda)
    return not any(isinstance(part, computes) for part in walk(body[0]))


@once
def constants_of(tree: ast.Module) -> dict[str, ast.expr]:
    """The names that a file gives a value at its top, and nowhere else: `EPOCHS = 100`."""
    stored = Counter(
        each.id for each in nodes_of(tree, ast.Name) if isinstance(each.ctx, ast.Store)
    )
    return {
        each.targets[0].id: each.value
        for each in tree.body
        if isinstance(each, ast.Assign)
        and isinstance(each.targets[0], ast.Name)
        and stored[each.targets[0].id] == 1
    }
