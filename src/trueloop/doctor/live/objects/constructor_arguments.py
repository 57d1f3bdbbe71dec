"""The arguments of a constructor: the values, and how the program writes them."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.model.findings import Location

_PLAIN = (int, float, str, bool, type(None))


def bound(function: Callable[..., Any], *args: object, **kwargs: object) -> dict[str, Any]:
    """The arguments of a call by name, defaults among them, without the first (`self`)."""
    try:
        found = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return {}
    found.apply_defaults()
    return dict(list(found.arguments.items())[1:])


def plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are numbers, texts or switches, or short lists of numbers."""
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        if type(value) in _PLAIN:
            found[name] = value
        elif type(value) in (list, tuple) and _is_short(value):
            found[name] = list(value)
    return found


def _is_short(value: Sequence[Any]) -> bool:
    return len(value) <= 64 and all(type(each) in (int, float) for each in value)


def spelled(place: Location, function: Callable[..., Any]) -> dict[str, str]:
    """How the arguments of the call at a place are written, by the names that a constructor has
    for them."""
    call = source_map.source_of(place.path).call_at(place) if place.end_line else None
    if call is None:
        return {}
    found = {each.arg: ast.unparse(each.value) for each in call.keywords if each.arg}
    try:
        names = list(inspect.signature(function).parameters)[1:]
    except (TypeError, ValueError):
        return found
    for name, given in zip(names, call.args, strict=False):
        if isinstance(given, ast.Starred):
            break
        found[name] = ast.unparse(given)
    return found


def base_of_power(written: str) -> float | None:
    """The `b` of `lambda epoch: b**epoch`."""
    try:
        node = ast.parse(written, mode="eval").body
    except SyntaxError:
        return None
    body = node.body if isinstance(node, ast.Lambda) else None
    if isinstance(body, ast.BinOp) and isinstance(body.op, ast.Pow):
        base, power = body.left, body.right
        if isinstance(base, ast.Constant) and isinstance(power, ast.Name):
            return base.value if isinstance(base.value, float) else None
    return None


def of_partial(function: object) -> dict[str, Any]:
    """The plain keywords that were fixed in a `functools.partial`."""
    return plain(function.keywords) if isinstance(function, functools.partial) else {}
