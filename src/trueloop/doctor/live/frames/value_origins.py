"""The expressions that a variable of a running function comes from, as the source has them."""

from __future__ import annotations

import ast
import inspect
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, MethodType

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.frames.live_expressions import FrameNames, value_of
from trueloop.doctor.live.frames.source_map import source_of
from trueloop.doctor.model.returned_scores import called_part, returned
from trueloop.doctor.model.variables import default_of, given, names_of, stores

_MOST = 4
"""Steps back from a variable to what it was given."""


def origins(written: str, frame: FrameType) -> tuple[str, ...]:
    """The expressions that a score comes from: the only one that its function assigns to the
    variable, or what the caller passes for it, and so on for a variable that is given there, up to
    what a function of the program returns."""
    node: ast.expr | None = ast.parse(written or "0", mode="eval").body
    at: FrameType | None = frame
    last: tuple[ast.expr, FrameType] | None = None
    found: list[ast.expr] = []
    while node is not None and at is not None:
        last = node, at
        if not isinstance(node, ast.Name) or len(found) == _MOST:
            break
        node, at = _origin(node.id, at)
        if node is not None:
            found.append(node)
    results = _returned(*last) if last is not None else []
    return tuple(ast.unparse(each) for each in (*found, *results))


def _returned(node: ast.expr, frame: FrameType) -> list[ast.expr]:
    call, part = called_part(node)
    if call is None:
        return []
    names = FrameNames(frame)
    try:
        function = value_of(call.func, names.named)
    finally:
        names.forget()
    function = function.__func__ if type(function) is MethodType else function
    function = inspect.unwrap(function) if type(function) is FunctionType else None
    if type(function) is not FunctionType:
        return []
    code = function.__code__
    if user_frames.kind_of(code.co_filename) != "user":
        return []
    definition = _definition(code)
    return returned(definition, part) if definition is not None else []


def _origin(name: str, frame: FrameType) -> tuple[ast.expr | None, FrameType | None]:
    """The expression for a variable of a frame, and the frame that it is written in."""
    definition = _definition(frame.f_code)
    stored = _stores(frame.f_code).get(name, ())
    if stored or not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return (stored[0], frame) if len(stored) == 1 else (None, None)
    caller = frame.f_back
    if name not in names_of(definition.args) or caller is None:
        return None, None
    if user_frames.kind_of(caller.f_code.co_filename) != "user":
        return None, None
    place = user_frames.user_place(user_frames.sites(caller))[0]
    call = source_of(place.path).call_at(place) if place.end_line else None
    if call is None or any(isinstance(each, ast.Starred) for each in call.args):
        return None, None
    value, spread = given(definition.args, call, name, constructs=definition.name == "__init__")
    if value is not None:
        return value, caller
    return (None if spread else default_of(definition.args, name)), frame


@lru_cache(maxsize=1024)
def _definition(code: CodeType) -> ast.AST | None:
    """The function, or the file, whose code it is."""
    source = source_of(code.co_filename)
    if code.co_name == "<module>":
        return source.tree
    for node in source.nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            lines = (node.lineno, *(each.lineno for each in node.decorator_list))
            if code.co_firstlineno in lines:
                return node
    return None


@lru_cache(maxsize=1024)
def _stores(code: CodeType) -> dict[str, list[ast.expr | None]]:
    definition = _definition(code)
    return stores(definition) if definition is not None else {}
