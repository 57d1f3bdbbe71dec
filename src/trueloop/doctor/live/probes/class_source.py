"""Where a class writes what is asked for, in its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.model.findings import Location


def code_of(kind: type) -> set[Any]:
    """The code objects of the methods of a class and of those it is made from."""
    return {
        method.__code__
        for base in kind.__mro__
        for method in vars(base).values()
        if hasattr(method, "__code__")
    }


def classes(kind: type) -> Iterator[tuple[str, ast.ClassDef]]:
    """The user's own definitions of a class and of those it is made from."""
    for base in kind.__mro__:
        paths = {
            method.__code__.co_filename
            for method in vars(base).values()
            if hasattr(method, "__code__")
        }
        for path in sorted(paths):
            tree = source_map.source_of(path).tree if user_frames.kind_of(path) == "user" else None
            for node in ast.walk(tree) if tree is not None else ():
                if isinstance(node, ast.ClassDef) and node.name == base.__name__:
                    yield path, node


def attribute_set(kind: type, attribute: str) -> Location | None:
    """The first statement of a class that binds `self.attribute`."""
    for path, node in classes(kind):
        for each in ast.walk(node):
            targets = (
                each.targets if isinstance(each, ast.Assign)
                else [each.target] if isinstance(each, ast.AnnAssign) else []
            )  # fmt: skip
            for target in targets:
                if isinstance(target, ast.Attribute) and target.attr == attribute:
                    return place_of(path, each)
    return None


_DRAWS = re.compile(r"randn?|(\w+_)?(normal|uniform)_?")
_READS = frozenset("load from_numpy from_pretrained copy_ load_state_dict".split())


def draws_weights(kind: type) -> bool:
    """The user's class fills its weights with random numbers, and reads none from anywhere."""
    calls = {
        getattr(each.func, "attr", getattr(each.func, "id", ""))
        for _, node in classes(kind)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name != "forward"
        for each in ast.walk(method)
        if isinstance(each, ast.Call)
    }
    return any(map(_DRAWS.fullmatch, calls)) and calls.isdisjoint(_READS)


def place_of(path: str, node: Any, function: str = "") -> Location:
    return Location(
        path,
        node.lineno,
        node.col_offset + 1,
        node.end_lineno or node.lineno,
        (node.end_col_offset or 0) + 1,
        function,
    )
