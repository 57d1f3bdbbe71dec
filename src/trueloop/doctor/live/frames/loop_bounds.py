"""How many turns a loop will make, read off the frame that it runs in.

`for epoch in range(start, args.epochs)`: when the loop is entered, the numbers are there to be
looked up. Nothing of the program is called: no property, no `__len__` of its own classes.
"""

from __future__ import annotations

import ast
import inspect
import sys
from types import CodeType, FrameType
from typing import Any

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.model.things import Loop

_SEES_ITSELF = frozenset("locals vars dir eval exec".split())
_SIZED = (list, tuple, dict, set, frozenset, range, str)
_WRAPPERS = frozenset("enumerate tqdm list tuple reversed sorted track progress_bar".split())
_RANGES = frozenset("range trange".split())
UNKNOWN = object()


def measure(loop: Loop, frame: FrameType | None) -> None:
    """Note what is known of a loop that the program has just entered."""
    while frame is not None and not _is_of(frame.f_code, loop):
        frame = frame.f_back
    node = None if frame is None else _node_of(loop)
    if node is None or frame is None:
        return
    loop.facts["over"] = ast.unparse(node.iter)
    loop.facts["lines"] = len(node.body)
    if not isinstance(node, ast.For):
        return
    names = Names(frame)
    try:
        _note(loop, node.iter, names)
    finally:
        names.forget()


def _is_of(code: CodeType, loop: Loop) -> bool:
    name = getattr(code, "co_qualname", code.co_name)
    name = "" if name == "<module>" else name.replace(".<locals>", "")
    return code.co_filename == loop.place.path and name == loop.place.function


def _node_of(loop: Loop) -> ast.For | ast.AsyncFor | None:
    for node in source_map.source_of(loop.place.path).statements_at(loop.place.line):
        at = getattr(node, "col_offset", -1) + 1
        if isinstance(node, (ast.For, ast.AsyncFor)) and at == loop.place.column:
            return node
    return None


def _note(loop: Loop, iterable: ast.expr, names: Names) -> None:
    while isinstance(iterable, ast.Call) and _name(iterable) in _WRAPPERS and iterable.args:
        iterable = iterable.args[0]
    if isinstance(iterable, ast.Call) and _name(iterable) in _RANGES:
        given = [names.value(each) for each in iterable.args]
        if given and all(type(each) is int for each in given) and given[2:] != [0]:
            loop.turns = len(range(*given)) if len(given) <= 3 else None
            if len(given) > 1 and not isinstance(iterable.args[0], ast.Constant):
                loop.facts["starts at"] = given[0]
                loop.facts["start written"] = ast.unparse(iterable.args[0])
        return
    if isinstance(iterable, (ast.List, ast.Tuple)):
        if not any(isinstance(each, ast.Starred) for each in iterable.elts):
            loop.turns = len(iterable.elts)
    elif loop.turns is None:
        length = names.length(names.value(iterable))
        loop.turns = length if type(length) is int else None


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


class Names:
    """What the names of a frame stand for, without a trace left in it."""

    def __init__(self, frame: FrameType) -> None:
        self._globals = frame.f_globals
        self._own = frame.f_code.co_flags & inspect.CO_OPTIMIZED
        # Up to Python 3.12, a function's `f_locals` is one dict, filled anew at each reading: the
        # same that `locals()` gives to the program, and it would keep tensors alive.
        self._copied = bool(self._own) and sys.version_info < (3, 13)
        self._locals: Any = {}
        if not (self._copied and _SEES_ITSELF & set(frame.f_code.co_names)):
            self._locals = frame.f_locals

    def forget(self) -> None:
        if self._copied:
            self._locals.clear()

    def named(self, name: str) -> Any:
        """What a name stands for, or `UNKNOWN`."""
        return self._locals.get(name, self._globals.get(name, UNKNOWN))

    def value(self, node: ast.expr) -> Any:
        """What an expression stands for, as far as that can be told without calling anything."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.named(node.id)
        if isinstance(node, ast.Attribute):
            return _attribute(self.value(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            holder, key = self.value(node.value), self.value(node.slice)
            if type(holder) in (dict, list, tuple) and isinstance(key, (str, int)):
                try:
                    return holder[key]
                except (KeyError, IndexError, TypeError):
                    return UNKNOWN
        if isinstance(node, ast.BinOp):
            return _computed(node.op, self.value(node.left), self.value(node.right))
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            return self._called(node)
        return UNKNOWN

    def _called(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name):
            return UNKNOWN
        value = self.value(node.args[0])
        if node.func.id == "len":
            return self.length(value)
        if node.func.id == "int" and isinstance(value, (int, float)):
            return int(value)
        return UNKNOWN

    def length(self, value: Any) -> Any:
        """The length of what counts its elements itself."""
        return len(value) if type(value) in _SIZED else UNKNOWN


def _attribute(holder: Any, name: str) -> Any:
    if holder is UNKNOWN:
        return UNKNOWN
    found = inspect.getattr_static(holder, name, UNKNOWN)
    # What computes itself when it is read is left alone.
    return UNKNOWN if hasattr(type(found), "__get__") else found


def _computed(operator: ast.operator, left: Any, right: Any) -> Any:
    if type(left) not in (int, float) or type(right) not in (int, float):
        return UNKNOWN
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        return left * right
    if isinstance(operator, ast.FloorDiv) and right:
        return left // right
    if isinstance(operator, ast.Div) and right:
        return left / right
    return UNKNOWN
