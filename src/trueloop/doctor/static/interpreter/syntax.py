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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

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


def parse(text: str | bytes) -> ast.Module:
    """`ast.parse`, without its warnings about the user's strings. Raises `SyntaxError`,
    `ValueError` (null bytes), and `RecursionError` or `MemoryError` for what is nested too deeply,
    the same wherever it is called from."""
    if _takes_too_long(text):
        raise RecursionError
    with room(1_000), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


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
    return tuple(each.id for each in ast.walk(node) if isinstance(each, ast.Name))


@once
def size_of(node: ast.AST) -> int:
    """How many nodes it is made of."""
    return sum(1 for _ in ast.walk(node))
