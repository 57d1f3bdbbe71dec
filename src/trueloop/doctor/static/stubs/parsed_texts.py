"""Texts in the program that it parses: a configuration as JSON or TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from typing import Any

from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls
from trueloop.doctor.static.interpreter.values import Constant, DictValue, Sequence, Value

_PARSERS: dict[str, Callable[[str], Any]] = {
    "json.loads": json.loads,
    "tomllib.loads": tomllib.loads,
    "tomli.loads": tomllib.loads,
}
_LONGEST = 20_000
"""Characters of a text that is parsed."""


@calls(*_PARSERS)
def _parsed(call: LibraryCall) -> Value:
    text = call.const(0, "s")
    if not isinstance(text, str) or len(text) > _LONGEST or len(call.args) + len(call.kwargs) != 1:
        return call.unknown(*call.args, *call.kwargs.values())
    try:
        return _as_value(_PARSERS[call.name](text), call)
    except (ValueError, RecursionError):
        return call.unknown(*call.args)


def _as_value(found: Any, call: LibraryCall) -> Value:
    turns = call.machine.turns_begun
    if isinstance(found, dict):
        entries = {key: _as_value(each, call) for key, each in found.items()}
        return DictValue(entries, turns=turns)
    if isinstance(found, list):
        return Sequence("list", [_as_value(each, call) for each in found], turns=turns)
    return Constant(found)
