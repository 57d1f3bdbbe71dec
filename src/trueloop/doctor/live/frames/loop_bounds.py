"""How many turns a loop will make, read off the frame that it runs in.

`for epoch in range(start, args.epochs)`: when the loop is entered, the numbers are there to be
looked up. No code of the program is called: no property, no `__len__` of its classes.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from types import CodeType, FrameType

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.frames.live_expressions import FrameNames, length, value_of
from trueloop.doctor.live.frames.new_batches import goes_through_window
from trueloop.doctor.model.nodes import streams_taken
from trueloop.doctor.model.things import Loop

_WRAPPERS = frozenset("enumerate tqdm list tuple reversed sorted track progress_bar".split())
_RANGES = frozenset("range trange".split())
_IN_PLACE = ("<listcomp>", "<setcomp>", "<dictcomp>")
"""Comprehensions that run where they are written."""


def measure(loop: Loop, frame: FrameType | None) -> None:
    """Note what is known of a loop that the program has just entered."""
    while frame is not None and not _is_of(frame.f_code, loop):
        frame = frame.f_back
    node = None if frame is None else _node_of(loop)
    if frame is not None and frame.f_code.co_name in _IN_PLACE:
        _measure_comprehension(loop, frame)
    if node is None or frame is None:
        return
    loop.lines = len(node.body)
    if isinstance(node, ast.While):
        names = FrameNames(frame)
        try:
            loop.counters = _counters(node, names)
        finally:
            names.forget()
        return
    loop.over = ast.unparse(node.iter)
    if not isinstance(node, ast.For):
        return
    loop.takes = goes_through_window(source_map.source_of(loop.place.path), node)
    names = FrameNames(frame)
    try:
        _note(loop, node.iter, names)
    finally:
        names.forget()


def _measure_comprehension(loop: Loop, frame: FrameType) -> None:
    """`[self.piece() for _ in range(pieces)]`: what it goes over is read where it is written."""
    iterable = _iterable_at(loop.place.path, frame.f_code.co_firstlineno)
    if iterable is None or frame.f_back is None:
        return
    loop.over = ast.unparse(iterable)
    names = FrameNames(frame.f_back)
    try:
        _note(loop, iterable, names)
    finally:
        names.forget()


@lru_cache(maxsize=1024)
def _iterable_at(path: str, line: int) -> ast.expr | None:
    """The expression that the one comprehension on a line goes over."""
    found = [
        each.generators
        for each in source_map.source_of(path).nodes
        if isinstance(each, (ast.ListComp, ast.SetComp, ast.DictComp)) and each.lineno == line
    ]
    return found[0][0].iter if len(found) == 1 == len(found[0]) else None


def _is_of(code: CodeType, loop: Loop) -> bool:
    name = getattr(code, "co_qualname", code.co_name)
    name = "" if name == "<module>" else name.replace(".<locals>", "")
    return code.co_filename == loop.place.path and name == loop.place.function


def _node_of(loop: Loop) -> ast.For | ast.AsyncFor | ast.While | None:
    for node in source_map.source_of(loop.place.path).statements_at(loop.place.line):
        at = getattr(node, "col_offset", -1) + 1
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and at == loop.place.column:
            return node
    return None


def _counters(node: ast.While, names: FrameNames) -> dict[str, int]:
    """The numbers that each turn adds to: `iteration += 1`."""
    found = dict[str, int]()
    for each in ast.walk(node):
        if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add):
            value = value_of(each.target, names.named)
            if type(value) is int:
                found[ast.unparse(each.target)] = value
    return found


def _note(loop: Loop, iterable: ast.expr, names: FrameNames) -> None:
    while isinstance(iterable, ast.Call) and _name(iterable) in _WRAPPERS and iterable.args:
        iterable = iterable.args[0]
    taken = streams_taken(iterable)
    if taken is not None:
        streams = [value_of(each, names.named) for each in taken[0]]
        count = value_of(taken[1], names.named)
        loop.takes = all(map(_goes_on, streams))
        loop.turns = count if type(count) is int else None
        return
    if isinstance(iterable, ast.Call) and _name(iterable) in _RANGES:
        loop.counted = True
        given = [value_of(each, names.named) for each in iterable.args]
        if given and all(type(each) is int for each in given) and given[2:] != [0]:
            loop.turns = len(range(*given)) if len(given) <= 3 else None
        # Where it ends may be too much to compute: `range(start, min(start + budget, epochs))`.
        fixed = len(given) < 2 or isinstance(iterable.args[0], ast.Constant)
        if not fixed and type(given[0]) is int:
            loop.begins_at, loop.begin_spelled = given[0], ast.unparse(iterable.args[0])
        return
    if isinstance(iterable, ast.Call) and _name(iterable) == "count" and len(iterable.args) == 1:
        begin = value_of(iterable.args[0], names.named)
        if type(begin) is int and not isinstance(iterable.args[0], ast.Constant):
            loop.begins_at, loop.begin_spelled = begin, ast.unparse(iterable.args[0])
        return
    if isinstance(iterable, (ast.List, ast.Tuple)):
        if not any(isinstance(each, ast.Starred) for each in iterable.elts):
            loop.turns = len(iterable.elts)
    elif loop.turns is None:
        count = length(value_of(iterable, names.named))
        loop.turns = count if type(count) is int else None


def _goes_on(stream: object) -> bool:
    """It is an iterator: what is taken of it does not come again."""
    return any("__next__" in vars(each) for each in type(stream).__mro__)


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
