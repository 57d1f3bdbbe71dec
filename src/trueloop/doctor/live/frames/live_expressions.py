"""The value of an expression in a running program. No code of the program is called: no property,
no method of its classes."""

from __future__ import annotations

import ast
import dis
import inspect
import sys
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import nn

from trueloop.doctor.live.objects import inspection
from trueloop.doctor.model.arithmetic import computed, stays_small

UNKNOWN = object()
_SEES_ITSELF = frozenset("locals vars dir eval exec".split())
_NUMBERS = (int, float)
_PLAIN = (type(None), bool, int, float, str)
_SIZED = (list, tuple, dict, set, frozenset, range, str)


@lru_cache(maxsize=1024)
def _sees_itself(code: CodeType) -> bool:
    """A function may read its own variables as a dict: it names `locals`, not `model.eval()`."""
    names = _SEES_ITSELF.intersection(code.co_names)
    return bool(names) and any(
        each.opname in ("LOAD_GLOBAL", "LOAD_NAME") and each.argval in names
        for each in dis.get_instructions(code)
    )


class FrameNames:
    """The values of a frame's names, without a trace left in it."""

    def __init__(self, frame: FrameType) -> None:
        self._globals = frame.f_globals
        # Up to Python 3.12, a function's `f_locals` is one dict, filled again at each reading: the
        # same that `locals()` gives to the program, and it would keep tensors alive.
        is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
        self._copied = bool(is_function) and sys.version_info < (3, 13)
        self._locals: Any = {}
        if not (self._copied and _sees_itself(frame.f_code)):
            self._locals = frame.f_locals

    def forget(self) -> None:
        if self._copied:
            self._locals.clear()

    def named(self, name: str) -> Any:
        """The value of a name, or `UNKNOWN`."""
        return self._locals.get(name, self._globals.get(name, UNKNOWN))


class FunctionNames:
    """The values of the names in a function before it is called."""

    def __init__(self, function: FunctionType, owner: Any, node: Any) -> None:
        """`owner`: what the function is a method of; `node`: the function's source."""
        self._globals = function.__globals__
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        stored = (
            each.id
            for each in ast.walk(node)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        )
        unknown = (*(each.arg for each in arguments), *stored)
        self._names: dict[str, Any] = dict.fromkeys(unknown, UNKNOWN)
        if owner is not None and arguments:
            self._names[arguments[0].arg] = owner
        self._names |= dict.fromkeys(function.__code__.co_freevars, UNKNOWN)
        self._names |= inspection.closed_over(function)

    def named(self, name: str) -> Any:
        """The value of a name, or `UNKNOWN`."""
        return self._names.get(name, self._globals.get(name, UNKNOWN))


def value_of(node: ast.AST, named: Callable[[str], Any]) -> Any:
    """The value of an expression, or `UNKNOWN`; `named` looks up a name."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return named(node.id)
    if isinstance(node, ast.Attribute):
        return attribute(value_of(node.value, named), node.attr)
    if isinstance(node, ast.Subscript):
        return _entry(value_of(node.value, named), value_of(node.slice, named))
    if isinstance(node, ast.BinOp):
        left, right = value_of(node.left, named), value_of(node.right, named)
        are_numbers = type(left) in _NUMBERS and type(right) in _NUMBERS
        small = are_numbers and stays_small(node.op, left, right)
        return computed(node.op, left, right, UNKNOWN) if small else UNKNOWN
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        operand = value_of(node.operand, named)
        return not operand if has_plain_truth(operand) else UNKNOWN
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = value_of(node.left, named), value_of(node.comparators[0], named)
        if left is not UNKNOWN and right is None and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return (left is None) is isinstance(node.ops[0], ast.Is)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _called(node.func.id, [value_of(each, named) for each in node.args])
    return UNKNOWN


def _entry(holder: Any, key: Any) -> Any:
    if type(holder) in (dict, list, tuple) and isinstance(key, (str, int)):
        try:
            return holder[key]
        except (KeyError, IndexError, TypeError):
            return UNKNOWN
    return UNKNOWN


def _called(name: str, args: list[Any]) -> Any:
    if name == "int" and len(args) == 1 and type(args[0]) in _NUMBERS:
        return int(args[0])
    return length(args[0]) if name == "len" and len(args) == 1 else UNKNOWN


def length(value: Any) -> Any:
    """The length of what counts its elements itself, or `UNKNOWN`."""
    return len(value) if type(value) in _SIZED else UNKNOWN


def attribute(owner: Any, name: str) -> Any:
    """`owner.name`, but for what would run code: properties and the like."""
    if owner is UNKNOWN or owner is None:
        return UNKNOWN
    held = inspection.attributes(owner)
    if name in held:
        return held[name]
    if inspection.is_a(owner, ModuleType):
        return UNKNOWN
    if inspection.is_a(owner, nn.Module) and name in owner._modules:
        return owner._modules[name]
    found = inspect.getattr_static(owner, name, UNKNOWN)
    if isinstance(found, FunctionType):
        return found if inspection.is_a(owner, type) else MethodType(found, owner)
    if isinstance(found, staticmethod):
        return found.__func__
    return UNKNOWN if hasattr(type(found), "__get__") else found


def has_plain_truth(value: object) -> bool:
    """Its truth can be asked for without running code of the program's."""
    if value is UNKNOWN:
        return False
    kind = type(value)
    return kind in _PLAIN or (callable(value) and not hasattr(kind, "__bool__"))
