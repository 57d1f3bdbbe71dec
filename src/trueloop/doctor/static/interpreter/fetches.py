"""Fetched data: which values a turn of a loop got from `next(batches)` or `get_batch()`.

What is computed from data that was there before the turn is not fetched, whatever is added to it:
several losses of one batch are not micro-batches.
"""

from __future__ import annotations

from trueloop.doctor.model.things import Loader, Model, Tensor
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.values import (
    DictValue,
    Function,
    LibraryMethod,
    LibraryName,
    Method,
    Sequence,
    Unknown,
    Value,
)

_PARTS = 8
"""Parts of a value that are looked at."""


def note_fetch(m: Interpreter, function: Value | None, args: list[Value], result: Value) -> None:
    """A call that was given no data has data for a result."""
    if not isinstance(result, (Tensor, Sequence, DictValue, Unknown)):
        return
    following = isinstance(function, LibraryName) and function.name == "builtins.next"
    if not following:
        if not isinstance(function, (Function, Method, LibraryMethod, Unknown)):
            return
        receiver = function.receiver if isinstance(function, (Method, LibraryMethod)) else None
        if isinstance(receiver, (Model, Tensor, Sequence, DictValue)):
            return
        if any(_has_data(each) or id(each) in m.fetches for each in (receiver, *args)):
            return
    _note(m, result, following=following)


def taken(m: Interpreter, value: Value) -> Value:
    """A value that a turn of a loop takes from a stream, which continues after the loop."""
    _note(m, value, following=True)
    return value


def _note(m: Interpreter, result: Value, *, following: bool) -> None:
    for each in (result, *_parts(result)):
        if isinstance(each, Tensor):
            plain = not each.graph and not each.is_loss and each.role != "parameter"
            if plain and (following or each.loader is None):
                each.fetched = m.turns_begun
        elif isinstance(each, Unknown) and not each.number:
            m.fetches[id(each)] = (each, m.turns_begun)


def inputs_fetched_at(m: Interpreter, inputs: list[Value]) -> int:
    """The turn in which the inputs of a model were fetched; 0 where some are older."""
    found = [fetched_at(m, each) for each in inputs] if m.turns else []
    return min((each for each in found if each is not None), default=0)


def fetched_at(m: Interpreter, value: Value, depth: int = 8) -> int | None:
    """The turn in which all data of a value was fetched; 0 where some is older, None without."""
    if isinstance(value, Tensor):
        return value.fetched
    if id(value) in m.fetches:
        return m.fetches[id(value)][1]
    parts: list[Value] = _parts(value)
    if isinstance(value, Unknown):
        parts = list(value.of[:_PARTS])
    elif isinstance(value, LibraryMethod):
        parts = [value.receiver]
    found = [fetched_at(m, each, depth - 1) for each in parts if depth]
    known = [each for each in found if each is not None]
    if known:
        return min(known)
    return 0 if isinstance(value, Unknown) and value.loop_variant else None


def loader_of_window(m: Interpreter, items: Sequence) -> Loader | None:
    """The loader of a list that has the micro-batches of one update: several, which were fetched
    one by one since the turn began; or one that represents them all, where a list collects batches
    until there are enough and is emptied after that."""
    stamps = {fetched_at(m, each) or 0 for each in items.values}
    loaders = {part.loader for each in items.values for part in (each, *_parts(each))
               if isinstance(part, Tensor)}  # fmt: skip
    if 0 in stamps or len(stamps) != len(items.values) or len(loaders) != 1 or None in loaders:
        return None
    collected = items.uncounted and m.turns[-1].index > 0 and m.predates_turn(items.turns)
    several = len(stamps) > 1 or collected
    return loaders.pop() if several and min(stamps) >= m.turn_starts[-1] else None


def _parts(value: Value) -> list[Value]:
    if isinstance(value, Sequence):
        return value.values[:_PARTS]
    return [*value.entries.values()][:_PARTS] if isinstance(value, DictValue) else []


def _has_data(value: Value | None) -> bool:
    if isinstance(value, Unknown):
        return value.loop_variant or any(isinstance(each, Tensor) for each in value.of)
    return isinstance(value, Tensor) or any(
        isinstance(each, Tensor) for each in (_parts(value) if value is not None else ())
    )
