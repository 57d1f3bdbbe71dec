"""The random draws, or seeds, of the user's code in a separate process: a loader's workers.

Such code is gone through on the side: rules do not hear of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trueloop.doctor.model import randomness
from trueloop.doctor.model.events import Event, Seeded
from trueloop.doctor.model.known_values import Value, contents
from trueloop.doctor.model.randomness import CHANGES, Draw, WorkerSeed
from trueloop.doctor.model.things import Dataset, Model
from trueloop.doctor.static.interpreter.interpreter import CallRecord, Interpreter
from trueloop.doctor.static.interpreter.loop_plans import elements
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import (
    Class,
    DictValue,
    Function,
    Generator,
    Instance,
    LibraryMethod,
    LibraryName,
    Method,
    OpaqueObject,
    Sequence,
    Unknown,
    constant,
)

_MOST = 64
_DEPTH = 3
"""A transform is in a list, of one that composes them, which is in the data set."""


@contextmanager
def aside(m: Interpreter) -> Iterator[list[Event]]:
    """Go through code without telling the rules, and leave the run's decisions as they were."""
    events: list[Event] = []
    before = m.watch, m.noted
    kept = dict(m.decided), dict(m.equal), dict(m.sites), set(m.reached), dict(m.entered)
    turns, starts = m.turns, m.turn_starts
    m.watch, m.noted = events.append, []
    m.turns, m.turn_starts = [], []
    try:
        yield events
    finally:
        m.watch, m.noted = before
        m.decided, m.equal, m.sites, m.reached, m.entered = kept
        m.turns, m.turn_starts = turns, starts


# ------------------------------------------------------------------------------- samples


def drawn_by(m: Interpreter, dataset: Dataset, node: ast.AST) -> list[Draw]:
    """The random draws of reading one sample."""
    with aside(m):
        for part in _parts(dataset):
            _read(m, part, node)
        noted = list(m.noted or [])
        noted += _inside_composed(m, noted, node)
    reseeded = {
        id(call.function.receiver)
        for call in noted
        if isinstance(call.function, LibraryMethod) and call.function.name in randomness.RESEEDS
    }
    return [draw for call in noted for draw in _draws(call, dataset, reseeded)]


def _parts(dataset: Dataset) -> list[Dataset]:
    """The data set and those that it is a part or a chain of."""
    found: list[Dataset] = []
    waiting: list[Any] = [dataset]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Dataset) and part not in found:
            found.append(part)
            waiting += [parent_of(part), *part.chained]
    return found


def parent_of(dataset: Dataset) -> Dataset | None:
    """The data set that a part reads from now: it may have been replaced."""
    found = dataset.attributes.get("dataset", dataset.parent)
    return found if dataset.parent is not None and isinstance(found, Dataset) else None


def _read(m: Interpreter, dataset: Dataset, node: ast.AST) -> None:
    index = Unknown("index")
    cls = dataset.cls
    if isinstance(cls, Class):
        found = cls.lookup("__getitem__")
        if isinstance(found, Function):
            m.call_value(Method(dataset, found), [index], node=node)
            return
        found = cls.lookup("__iter__")
        if isinstance(found, Function):
            made = m.call_value(Method(dataset, found), [], node=node)
            if isinstance(made, Generator):
                elements(m, made, node)
            return
    for name in ("transform", "transforms", "target_transform"):
        if name in dataset.attributes:
            _apply(m, dataset.attributes[name], node)


def _apply(m: Interpreter, transform: Value, node: ast.AST) -> None:
    if isinstance(transform, (Function, Method, Instance, OpaqueObject)):
        m.call_value(transform, [Unknown("sample")], node=node)
    elif isinstance(transform, (Sequence, DictValue)):
        values = transform.values if isinstance(transform, Sequence) else transform.entries.values()
        for each in list(values):
            _apply(m, each, node)


def _inside_composed(m: Interpreter, noted: list[CallRecord], node: ast.AST) -> list[CallRecord]:
    """The user's own transforms inside of a library's `Compose`, which were not called yet."""
    before = len(m.noted or [])
    waiting = [call.function for call in noted if isinstance(call.function, OpaqueObject)]
    for _ in range(50):
        if not waiting:
            break
        composed = waiting.pop()
        for part in composed.arguments.values():
            for each in part.values if isinstance(part, Sequence) else [part]:
                _apply(m, each, node)
                waiting += [each] if isinstance(each, OpaqueObject) else []
    return (m.noted or [])[before:]


def _draws(call: CallRecord, dataset: Dataset, reseeded: set[int]) -> list[Draw]:
    function = call.function
    own = call.kwargs.get("generator")
    if not _is_generator(own) and isinstance(function, LibraryMethod):
        own = function.receiver
        if _is_generator(own) and function.name in randomness.NO_DRAW:
            return []
    if isinstance(own, OpaqueObject) and _is_generator(own):
        name, made = _augments(call, dataset), own.made
        return [] if id(own) in reseeded else [Draw("", call.place, name, made)]
    if isinstance(function, OpaqueObject) and is_random(function):
        place = function.made or call.place
        return [Draw("torch", place, function.kind.rpartition(".")[2])]
    library = ""
    if isinstance(function, LibraryMethod) and function.name in randomness.IN_PLACE_DRAWS:
        library = "torch"
    elif isinstance(function, LibraryName):
        library = library_drawn(function.name)
    return [Draw(library, call.place, _augments(call, dataset))] if library else []


def _is_generator(value: Value | None) -> bool:
    return isinstance(value, OpaqueObject) and value.kind in randomness.GENERATORS


def library_drawn(name: str) -> str:
    """Whose global generator a function draws from; empty if none."""
    head, _, last = name.rpartition(".")
    if last in randomness.NO_DRAW:
        return ""
    if head in ("numpy.random", "random"):
        return head.partition(".")[0]
    return "torch" if head == "torch" and last in randomness.TORCH_DRAWS else ""


def is_random(transform: OpaqueObject) -> bool:
    """A transform of a library's that draws at random."""
    head, _, last = transform.kind.rpartition(".")
    never = constant(transform.arguments.get("p")) in (0, 0.0)
    return not never and randomness.is_random_transform(head.partition(".")[0], last)


def _augments(call: CallRecord, dataset: Dataset) -> str:
    """The augmentation that this draw serves; empty if it may serve something else."""
    named = randomness.augmenting(call.inside, _transforms_of(dataset))
    if named:
        return named
    for part in _parts(dataset):
        for name, value in part.attributes.items():
            if randomness.AUGMENTS.search(name) and constant(value) is True:
                return name
    return ""


def _transforms_of(dataset: Dataset) -> set[str]:
    """The names of the user's functions and classes that a data set holds as its transforms."""
    waiting: list[tuple[Value, int]] = [
        (value, 0)
        for part in _parts(dataset)
        for name, value in part.attributes.items()
        if randomness.holds_transform(name)
    ]
    found: set[str] = set()
    while waiting and len(found) < _MOST:
        value, depth = waiting.pop()
        cls = value.cls if isinstance(value, (Instance, Model)) else None
        if isinstance(value, Method):
            value = value.function
        if isinstance(value, Function):
            found.add(value.name.rpartition(".")[2])
        elif isinstance(cls, Class):
            found.add(cls.name.rpartition(".")[2])
        held: list[Value] = contents(value)
        if isinstance(value, (Instance, Model)):
            held = [*value.attributes.values()]
        elif isinstance(value, OpaqueObject):
            held = [*value.call, *value.arguments.values()]
        waiting += [(each, depth + 1) for each in held] if depth < _DEPTH else []
    return found


# ------------------------------------------------------------------------------- workers


_speaks_of_dataset = once(randomness.mentions_dataset)
_NOT_SEEN_TO_CHANGE = frozenset(
    "numpy.random.seed random.seed torch.manual_seed torch.random.manual_seed builtins.int"
    " torch.cuda.manual_seed torch.cuda.manual_seed_all builtins.print os.environ.setdefault"
    " builtins.abs builtins.str".split()
)


def seeds_of(m: Interpreter, function: Value, node: ast.AST) -> list[WorkerSeed] | None:
    """The generators that a `worker_init_fn` seeds; None if it cannot be read."""
    if not isinstance(function, (Function, Method, OpaqueObject, Instance)):
        return None
    with aside(m) as events:
        m.call_value(function, [Unknown("worker_id")], node=node)
        noted = list(m.noted or [])
    called = [call.function for call in noted]
    strange = [
        each
        for each in called
        if not isinstance(each, (Function, Method))
        and not (isinstance(each, LibraryName) and each.name in _NOT_SEEN_TO_CHANGE)
        and each is not function
    ]
    return [
        WorkerSeed(
            event.library, not strange and not CHANGES.search(m.key(event.value)), event.place
        )
        for event in events
        if isinstance(event, Seeded)
    ]


def touches_dataset(function: Value) -> bool:
    """A `worker_init_fn` that may reach into the data set itself (or is not understood)."""
    if isinstance(function, OpaqueObject) and function.call:
        return touches_dataset(function.call[0])
    inner: Value | None = function.function if isinstance(function, Method) else function
    if isinstance(inner, Instance):
        inner = inner.cls.lookup("__call__")
    if not isinstance(inner, Function):
        return True
    return _speaks_of_dataset(inner.node)
