"""The shapes of NumPy arrays, where constants decide them."""

from __future__ import annotations

from trueloop.doctor.model.known_values import loop_of
from trueloop.doctor.model.randomness import GENERATORS
from trueloop.doctor.model.things import Size
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.values import (
    Constant,
    OpaqueObject,
    Sequence,
    Unknown,
    Value,
    constant,
)
from trueloop.doctor.static.stubs import statistics, tensor_shapes as shapes

_FILLED = frozenset("zeros ones empty full".split())
_SAME = frozenset("array asarray asanyarray ascontiguousarray copy absolute rint fabs".split())
_BY_DIMENSIONS = frozenset({"rand", "randn"})
_SIZE_AT = {
    **dict.fromkeys("random random_sample standard_normal standard_exponential".split(), 0),
    **dict.fromkeys("choice exponential poisson geometric chisquare rayleigh".split(), 1),
    **dict.fromkeys("randint integers normal uniform laplace beta gamma".split(), 2),
    **dict.fromkeys("binomial lognormal logistic gumbel".split(), 2),
}
"""The position of the size among the arguments of functions that draw random numbers."""
_NUMBERS = frozenset("random randrange randint uniform gauss normalvariate betavariate".split())
"""Functions of `random` that return one number."""
_OTHERWISE = frozenset("view repeat".split())
"""Methods of arrays that differ from those of tensors."""


def notice(
    m: Interpreter, name: str, args: list[Value], kwargs: dict[str, Value], found: Unknown
) -> None:
    """A function of a library may return an array."""
    head, _, last = name.rpartition(".")
    if (head == "random" and last in _NUMBERS) or head == "math":
        found.shape = ()
    elif head == "numpy.random":
        found.shape = _drawn(m, last, args, kwargs)
    elif head == "numpy":
        if args:
            statistics.notice(m, args[0], last, args[1:], kwargs, found)
        found.shape = _made(m, last, args, kwargs)


def notice_method(
    m: Interpreter,
    receiver: Value,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    found: Unknown,
) -> None:
    """A method of an array or of a generator may return an array."""
    statistics.notice(m, receiver, name, args, kwargs, found)
    if isinstance(receiver, OpaqueObject) and receiver.kind in GENERATORS:
        found.shape = _drawn(m, name, args, kwargs)
    elif isinstance(receiver, Unknown) and receiver.shape and name not in _OTHERWISE:
        turns = name == "transpose"  # with axes it is what `permute` is to tensors
        other = ("permute" if args else "t") if turns else name
        found.shape = shapes.of_method(other, receiver.shape, args, kwargs)


def _drawn(m: Interpreter, name: str, args: list[Value], kwargs: dict[str, Value]) -> shapes.Shape:
    if name in _BY_DIMENSIONS:
        return tuple(_size(m, each) for each in args)
    if name == "permutation" and args:
        number = _size(m, args[0])
        return (number,) if isinstance(number, int) else shapes.shape_of(args[0])
    at = _SIZE_AT.get(name)
    if at is None:
        return None
    return _sizes(m, kwargs.get("size", args[at] if len(args) > at else None))


def _made(m: Interpreter, name: str, args: list[Value], kwargs: dict[str, Value]) -> shapes.Shape:
    first = args[0] if args else None
    if name in _FILLED:
        return _sizes(m, kwargs.get("shape", first))
    if name in _SAME or name.endswith("_like"):
        return shapes.shape_of(first)
    if name in ("eye", "identity"):
        numbers = [_size(m, each) for each in args[:2] if name == "eye" or each is first]
        return (*numbers, *numbers)[:2] if numbers else None
    if name == "linspace":
        return (_size(m, kwargs.get("num", args[2] if len(args) > 2 else Constant(50))),)
    if name == "arange":
        return shapes.range_of(args)
    if name == "expand_dims" and len(args) == 2:
        return shapes.of_method("unsqueeze", shapes.shape_of(first), args[1:], {})
    different = name in _OTHERWISE or name == "transpose" or (name == "where" and len(args) < 3)
    return None if different else shapes.of_call(name, args, kwargs)


def _sizes(m: Interpreter, given: Value | None) -> shapes.Shape:
    """`(n, 2)`, or `n`."""
    if isinstance(given, Sequence):
        return None if given.open else tuple(_size(m, each) for each in given.values)
    if given is None or constant(given) is None:
        return None
    return (_size(m, given),)


def _size(m: Interpreter, given: Value) -> Size:
    """None for a number that changes from turn to turn of a loop."""
    return None if loop_of(given) else m.size(given)
