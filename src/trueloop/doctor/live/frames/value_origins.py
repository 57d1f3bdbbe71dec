"""The expressions that a variable of a running function comes from, as the source has them."""

from __future__ import annotations

import ast
from functools import lru_cache
from types import CodeType, FrameType

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.frames.source_map import source_of
from trueloop.doctor.model.variables import default_of, given, names_of, stores

_MOST = 4
"""Steps back from a variable to what it was given."""


def origins(written: str, frame: FrameType) -> tuple[str, ...]:
    """The expressions that a variable comes from: the only one that its function assigns to it, or
    what the caller passes for it, and so on for a variable that is given there."""
    node: ast.expr | None = ast.parse(written or "0", mode="eval").body
    at: FrameType | None = frame
    found: list[str] = []
    while isinstance(node, ast.Name) and at is not None and len(found) < _MOST:
        node, at = _origin(node.id, at)
        if node is not None:
            found.append(ast.unparse(node))
    return tuple(found)


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
