"""Methods of texts and numbers that are known."""

from __future__ import annotations

import ast

from trueloop.doctor.model.arithmetic import TEXT, is_small, len_of
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.values import Constant, Sequence, Value

_TEXT_METHODS = frozenset(
    "lower upper strip lstrip rstrip startswith endswith replace split rsplit partition"
    " rpartition removeprefix removesuffix title capitalize isdigit".split()
)


def method_of_constant(
    m: Interpreter,
    receiver: Constant,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    """Methods of texts and numbers, where all is known and the result is small."""
    method = getattr(receiver.value, name, None)
    values = [each.value for each in args if isinstance(each, Constant)]
    safe = isinstance(receiver.value, str) and name in _TEXT_METHODS and not kwargs
    safe = safe and all(map(is_small, (receiver.value, *values)))
    if name == "replace" and safe and len(values) > 1:
        safe = (len(receiver.value) + 1) * max(1, len_of(values[1])) <= TEXT
    if safe and callable(method) and len(values) == len(args):
        try:
            result = method(*values)
        except (TypeError, ValueError, IndexError):
            return m.unknown(node, [receiver, *args])
        if isinstance(result, list):
            return Sequence("list", [Constant(each) for each in result], turns=m.turns_begun)
        return Constant(result)
    found = m.unknown(node, [receiver, *args, *kwargs.values()])
    found.number = True
    if name == "format" and isinstance(receiver.value, str) and not kwargs:
        found.text = _formatted(receiver.value, args)
    return found


def _formatted(text: str, args: list[Value]) -> str | None:
    """`"net_{}".format(i)` in this turn of the loops: with nothing but empty braces in it."""
    pieces = text.split("{}")
    values = [each for each in args if isinstance(each, Constant) and each.modulo is None]
    is_known = len(values) == len(args) == len(pieces) - 1 and is_small(text)
    if not is_known or any("{" in each or "}" in each for each in pieces):
        return None
    if not all(is_small(each.value) for each in values):
        return None
    written = [str(each.value) for each in values]
    return "".join(part for pair in zip(pieces, [*written, ""], strict=True) for part in pair)
