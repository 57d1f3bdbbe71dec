"""Computing with the constants of a program: nothing is computed that would not fit."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

SIZE = 200
"""The most elements, entries or parts that a value keeps; the first of them represent the rest."""
BITS = 4_096
"""Length of the longest whole number that is known."""
TEXT = 10_000
"""Characters of the longest text that is computed."""

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_WIDE = re.compile(r"%[^a-zA-Z%]*(\*|\d{3})")
"""A format that fills up with blanks: `"%1000000d" % n`."""


def is_small(value: Any) -> bool:
    """A constant that may be computed with: a number, or a text or tuple that is not too long."""
    if isinstance(value, int):
        return value.bit_length() <= BITS
    if isinstance(value, (str, bytes)):
        return len(value) <= TEXT
    if isinstance(value, (tuple, list, set, frozenset, dict)):
        return len(value) <= SIZE
    return True


def stays_small(sign: ast.operator, left: Any, right: Any) -> bool:
    """The result of an operation on two constants is small too; nothing is computed to find out."""
    if not (is_small(left) and is_small(right)):
        return False
    if isinstance(left, int) and isinstance(right, int):
        if isinstance(sign, ast.Pow):
            return right < 0 or left.bit_length() * right <= BITS
        if isinstance(sign, ast.LShift):
            return right < 0 or left.bit_length() + right <= BITS
        if isinstance(sign, ast.Mult):
            return left.bit_length() + right.bit_length() <= BITS
        return True
    numbers = (int, float, complex)
    if isinstance(left, numbers) and isinstance(right, numbers):
        return True
    if isinstance(sign, ast.Add):
        return len_of(left) + len_of(right) <= (SIZE if isinstance(left, tuple) else TEXT)
    if isinstance(sign, ast.Mod):
        return isinstance(left, str) and len(left) <= TEXT // 10 and not _WIDE.search(left)
    return not isinstance(sign, ast.Mult)


def len_of(value: Any) -> int:
    """Elements or characters; 0 for what has none."""
    return len(value) if hasattr(value, "__len__") else 0


def is_hashable(value: Any) -> bool:
    """A constant that can be the key of a dict: no list, no slice, no tuple with one in it."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def computed(sign: ast.operator, left: Any, right: Any, otherwise: Any) -> Any:
    """The result of an operation on two small constants; `otherwise` if it raises."""
    try:
        return _ARITHMETIC[type(sign)](left, right)
    except (TypeError, ValueError, ArithmeticError, KeyError):
        return otherwise
