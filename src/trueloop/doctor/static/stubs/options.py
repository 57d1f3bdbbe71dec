"""Options of the command line with their defaults, and of layers."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from typing import Any

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import PositionalEps
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall
from trueloop.doctor.static.interpreter.syntax import once, written
from trueloop.doctor.static.interpreter.values import Constant, Unknown, Value, constant

_ENTRY = re.compile(r"\[['\"](\w+)['\"]\]$")
"""The last key of an entry in a table: `config['dropout']`."""


def option_default(m: Interpreter, value: Value) -> object:
    """The default of the command line's option that a value is (`args.gamma`): a number, or a list
    of numbers; None if it is not an option, or has none."""
    if not isinstance(value, Unknown):
        return None
    name = value.key.rpartition(".")[2]
    if "." not in value.key or not name.isidentifier():
        return None
    return options_of(m).get(name)


def by_default(m: Interpreter, value: Value | None) -> Value | None:
    """The text of an option that names one of several things, as in `getattr(nn, args.act)` and
    `LOSSES[args.loss]`: its default, or its value in this run. Returns any other value
    unchanged."""
    default = option_default(m, value) if isinstance(value, Unknown) else None
    if not isinstance(value, Unknown) or not isinstance(default, str):
        return value
    text = m.text_of(value, default)
    return value if text is None else Constant(text)


def options_of(m: Interpreter) -> dict[str, Any]:
    """The options of the command line, in all files that the run has come to: name -> default."""
    modules = [*m.modules, *(scope.module for scope in m.namespaces.values())]
    found: dict[str, Any] = {}
    for module in modules:
        found = {**module.survey.options, **found}
    return found


def default_texts(m: Interpreter, value: Value) -> list[str]:
    """The texts that an option may be by default: `"cuda" if cuda.is_available() else "cpu"`."""
    if not isinstance(value, Unknown) or "." not in value.key:
        return []
    name = value.key.rpartition(".")[2]
    modules = [*m.modules, *(scope.module for scope in m.namespaces.values())]
    return next((each.survey.either[name] for each in modules if name in each.survey.either), [])


def dropout_rate(m: Interpreter, value: Value) -> float | None:
    """The rate of a dropout: an option's default, and 0 for an entry of a configuration that the
    program only ever writes as 0. None if unknown."""
    if isinstance(value, Constant):
        return value.value if isinstance(value.value, (int, float)) else None
    default = option_default(m, value)
    if isinstance(default, (int, float)):
        return default
    return 0 if _settings_of(m, value) == {0} else None


def _settings_of(m: Interpreter, value: Value) -> set[object]:
    """All values that the tables of the program give an entry of an unknown table: 0.0 for
    `config["dropout"]` beside `{"dropout": 0.0}`; None is a value that is not a number."""
    entry = _ENTRY.search(value.key) if isinstance(value, Unknown) else None
    if entry is None:
        return set()
    modules = [*m.modules, *(scope.module for scope in m.namespaces.values())]
    return {each for module in modules for each in _entries(module.tree).get(entry[1], ())}


@once
def _entries(tree: ast.Module) -> dict[str, set[object]]:
    """The numbers that a file gives the keys of its tables."""
    found: dict[str, set[object]] = defaultdict(set)
    for node in walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                name = getattr(key, "value", None)
                if isinstance(name, str):
                    found[name].add(_number(value))
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            name = getattr(node.slice, "value", None)
            if isinstance(name, str):
                found[name].add(None)
    return found


def _number(node: ast.expr) -> object:
    value = getattr(node, "value", None)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def positional_eps(call: LibraryCall) -> PositionalEps | None:
    """`nn.BatchNorm2d(n, 0.8)`, unless it is written as an `eps`."""
    written_args = getattr(call.node, "args", [])
    if len(call.args) != 2 or len(written_args) != 2 or call.open or "momentum" in call.kwargs:
        return None
    value = constant(call.args[1])
    if type(value) is not float or "eps" in written(written_args[1]).lower():
        return None
    return PositionalEps(value, call.machine.place(written_args[1]))
