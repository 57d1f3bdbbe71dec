"""The form of a saved state: declared by its owner as data, and checked before it is used.

A shape is a type (`int`, `str`, `Tensor`, …), None, a dict of shapes by key, or one of the classes
below. Types are exact: True is not an int. `float` takes an int too, as JSON does.

    WINDOW = {"micro_batches": COUNT, "losses": Each(SCALAR), "gradients": Table(str, Tensor)}
    problem(state, {"window": WINDOW})
    # window.micro_batches is a str, not an int of 0 or more
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

Shape = Any

_MISSING = object()


class Anything:
    """Whatever its reader takes: it looks at it itself."""


@dataclass(frozen=True)
class Maybe:
    """The value of a key that need not be there."""

    shape: Shape


@dataclass(frozen=True)
class ListOf:
    """A list or tuple of any length, every entry of one shape."""

    shape: Shape


class TupleOf:
    """A list or tuple with one shape for each of its entries."""

    def __init__(self, *shapes: Shape) -> None:
        self.shapes = shapes


@dataclass(frozen=True)
class DictOf:
    """A dict with keys of any name, every value of one shape."""

    key: type
    value: Shape


class OneOf:
    """One of several shapes."""

    def __init__(self, *shapes: Shape) -> None:
        self.shapes = shapes


@dataclass(frozen=True)
class Where:
    """A shape, and a test that its values have to pass; `words` say what passes, as `a …`."""

    shape: Shape
    test: Callable[[Any], bool]
    words: str


class Problem(NamedTuple):
    """The first place that is not as declared."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path.lstrip('.') or 'it'} {self.what}"


COUNT = Where(int, lambda n: 0 <= n < 2**63, "an int of 0 or more")
FINITE = Where(float, math.isfinite, "a finite number")
NUMBERS = Where(
    Tensor,
    lambda t: t.layout is torch.strided and not t.is_quantized and t.device.type != "meta",
    "a dense tensor with values",
)
SCALAR = Where(NUMBERS, lambda t: not t.ndim and t.is_floating_point(), "a scalar of floats")
EMPTY = Where(dict, lambda d: not d, "an empty dict")


def problem(value: Any, shape: Shape, path: str = "") -> Problem | None:
    """The first place in `value` that is not as `shape` says; None if there is none."""
    if shape is Anything:
        return None
    if value is _MISSING:
        return None if isinstance(shape, Maybe) else Problem(path, "is missing")
    if isinstance(shape, Maybe):
        return problem(value, shape.shape, path)
    if isinstance(shape, OneOf):
        return _of_several(value, shape, path)
    if isinstance(shape, Where):
        return _tested(value, shape, path)
    if not _is_of_kind(value, shape):
        return Problem(path, f"is {_kind(value)}, not {words(shape)}")
    for key, part, inner in _parts(value, shape):
        found = problem(part, inner, f"{path}{key}")
        if found is not None:
            return found
    if isinstance(shape, TupleOf) and len(value) != len(shape.shapes):
        return Problem(path, f"has {len(value)} entries, not {len(shape.shapes)}")
    return None


def words(shape: Shape) -> str:
    """A value of this shape, as `a …`."""
    if shape is None:
        return "None"
    if isinstance(shape, OneOf):
        return " or ".join(dict.fromkeys(map(words, shape.shapes)))
    if isinstance(shape, Where):
        return shape.words
    if isinstance(shape, (dict, DictOf)):
        return "a dict"
    if isinstance(shape, (ListOf, TupleOf)):
        return "a list"
    return "a number" if shape is float else _article(shape.__name__)


def _of_several(value: Any, shape: OneOf, path: str) -> Problem | None:
    deepest = Problem(path, f"is {_kind(value)}, not {words(shape)}")
    for one in shape.shapes:
        found = problem(value, one, path)
        if found is None:
            return None
        # The one that is nearest to what was meant: it fits up to a place further inside.
        if len(found.path) > len(deepest.path):
            deepest = found
    return deepest


def _tested(value: Any, shape: Where, path: str) -> Problem | None:
    inner = shape.shape
    found = problem(value, inner, path)
    if found is not None:
        same = found.path == path and not isinstance(inner, (dict, ListOf, TupleOf, DictOf))
        return Problem(path, f"is {_kind(value)}, not {shape.words}") if same else found
    try:
        fits = shape.test(value)
    except (ValueError, TypeError, OverflowError, RuntimeError, ArithmeticError):
        fits = False
    return None if fits else Problem(path, f"is {_shown(value)}, not {shape.words}")


def _is_of_kind(value: Any, shape: Shape) -> bool:
    if shape is None:
        return value is None
    if isinstance(shape, (dict, DictOf)):
        return isinstance(value, dict)
    if isinstance(shape, (ListOf, TupleOf)):
        return isinstance(value, (list, tuple))
    if shape is float:
        return type(value) in (float, int)
    if shape is Tensor:
        return isinstance(value, Tensor)
    return isinstance(value, shape) and not (shape is int and isinstance(value, bool))


def _parts(value: Any, shape: Shape) -> list[tuple[str, Any, Shape]]:
    if isinstance(shape, dict):
        return [(f".{key}", value.get(key, _MISSING), part) for key, part in shape.items()]
    if isinstance(shape, DictOf):
        keys = [(f" has the key {_shown(key)}, which", key, shape.key) for key in value]
        return keys + [(f".{_text(key)}", part, shape.value) for key, part in value.items()]
    if isinstance(shape, ListOf):
        return [(f"[{k}]", part, shape.shape) for k, part in enumerate(value)]
    if isinstance(shape, TupleOf):
        return [
            (f"[{k}]", part, one)
            for k, (part, one) in enumerate(zip(value, shape.shapes))  # noqa: B905
        ]
    return []


def _kind(value: Any) -> str:
    return "None" if value is None else _article(type(value).__name__)


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _shown(value: Any) -> str:
    """A value in a few characters: a file that was tampered with may contain anything."""
    if isinstance(value, Tensor):
        return f"a {value.layout} tensor of {value.dtype} and shape {tuple(value.shape)}"
    if isinstance(value, (bool, float, str)) or (isinstance(value, int) and abs(value) < 10**30):
        return _text(repr(value))
    return _article(type(value).__name__)


def _text(value: Any) -> str:
    text = " ".join(str(value).split()) if isinstance(value, str) else _shown(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
