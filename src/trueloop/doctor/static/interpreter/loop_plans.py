"""Plans of loops: the few turns that represent all, and the element that each takes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from trueloop.doctor.model.known_values import loop_of
from trueloop.doctor.model.things import Dataset, Loader, Loop, Model, Size, Tensor
from trueloop.doctor.static.interpreter.calls import enter, start
from trueloop.doctor.static.interpreter.derived_containers import container_in
from trueloop.doctor.static.interpreter.fetches import loader_of_window, taken
from trueloop.doctor.static.interpreter.generators import MOST, yielded
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.list_lengths import count_of
from trueloop.doctor.static.interpreter.values import (
    CombinedIterable,
    Constant,
    DictValue,
    Function,
    Generator,
    Instance,
    LibraryMethod,
    Method,
    Parameters,
    Sequence,
    Unknown,
    Value,
)
from trueloop.doctor.static.stubs.containers import container_of
from trueloop.doctor.static.stubs.options import option_default
from trueloop.doctor.static.stubs.tensors import row_of

TURNS = 3
"""Turns that represent many: a first one, a second one, and a last."""
FEW = 6
"""A container of at most as many elements is gone through whole."""
HANDLERS = 32
"""The same, of functions that are called one after the other."""


@dataclass(slots=True)
class LoopPlan:
    """How a loop over something is gone through."""

    count: int
    make: Callable[[Loop, int], Any]
    """The element of a turn."""
    complete: bool = False
    """These are all the turns that it makes."""
    size: Size = None
    loader: Loader | None = None
    endless: bool = False
    by_hand: bool = False
    """A range that moves in steps of a batch."""
    counted: bool = False
    """A range of numbers."""
    takes: bool = False
    """Its turns take the next few of a stream, which continues after them."""
    windows: bool = False
    """Each turn has a window of micro-batches."""
    listed: bool = False
    """Its elements are in a container: they do not count anything."""
    parts: tuple[Size, Size] | None = None  # see `Loop`
    acts: bool = False
    """Its elements are functions, or objects of several classes: each turn does something else."""


def plan(m: Interpreter, value: Value | None, node: ast.AST) -> LoopPlan:
    """How to go through a value."""
    m.spend(1, node)
    with m.nested(node) as may_go:
        return _plan(m, value, node) if may_go else _exactly([])


def _plan(m: Interpreter, value: Any, node: ast.AST) -> LoopPlan:
    if isinstance(value, Loader):
        return LoopPlan(
            TURNS, lambda loop, index: _batch(m, value, node), False, value.length, value
        )
    if isinstance(value, CombinedIterable):
        return _STREAMS[value.kind](m, value, node)
    if isinstance(value, (Sequence, Constant, DictValue, Parameters)):
        return _plan_of_container(m, value, node)
    if isinstance(value, Model):
        kind = container_of(value)
        layers: list[Value] = [*value.children.values()]
        if kind == "ModuleDict":
            layers = [Constant(name) for name in value.children]
        if layers and value.complete:
            return _exactly(layers)
        if layers and kind:
            # Layers of which the number is unknown: those that are known stand for the others.
            return LoopPlan(min(len(layers), 2), lambda loop, index: layers[index])
    if isinstance(value, Tensor):
        few = m.turns or m.inside_models
        count = 2 if few and value.parts is None else TURNS
        return LoopPlan(count, lambda loop, index: row_of(m, value, node), parts=value.parts)
    if isinstance(value, Dataset):
        return LoopPlan(TURNS, lambda loop, index: _sample(m, node), False, value.size)
    if isinstance(value, Instance):
        found = _plan_of_instance(m, value, node)
        if found is not None:
            return found
    key = m.key(value)
    return LoopPlan(
        TURNS if m.batch_turn() is None else 2,
        lambda loop, index: Unknown(f"{key}[{m.turns_begun}]", (value,), loop_variant=True),
        size=f"len({key})",
    )


def _exactly(values: list[Value]) -> LoopPlan:
    return LoopPlan(len(values), lambda loop, index: values[index], True, len(values), listed=True)


def _plan_of_container(m: Interpreter, value: Any, node: ast.AST) -> LoopPlan:
    if isinstance(value, Parameters):
        leaf = _leaf(m, value, node)
        return LoopPlan(1, lambda loop, index: leaf)
    if isinstance(value, DictValue):
        keys: list[Value] = [Constant(key) for key in value.entries]
        if not keys or value.open:
            keys.append(Unknown(f"key<{m.number(value)}>", loop_variant=True))
        return _exactly(keys[:FEW])
    if isinstance(value, Constant):
        inner = value.value
        if isinstance(inner, (str, tuple, list)) and len(inner) <= 64:
            return _some([Constant(each) for each in inner])
        return _some([Unknown(f"{m.key(value):.20}[*]", loop_variant=True)])
    if not value.values and value.open:
        return LoopPlan(
            2, lambda loop, index: Unknown(f"<{m.number(value)}[{index}]>", loop_variant=True)
        )
    # `[*model.parameters()]`: what was spread is in it as a whole.
    found = _some(
        [
            _leaf(m, each, node) if value.open and isinstance(each, Parameters) else each
            for each in value.values
        ]
    )
    found.complete &= not value.open
    found.loader = loader_of_window(m, value) if m.turns else None
    found.takes = found.loader is not None
    return found


def _leaf(m: Interpreter, parameters: Parameters, node: ast.AST) -> Tensor:
    """One parameter, which represents all of them."""
    leaf = Tensor(
        role="parameter", graph=False, models=frozenset(parameters.models), made=m.place(node)
    )
    leaf.holder = parameters.holder
    return leaf


def _some(values: list[Value]) -> LoopPlan:
    acts = _act(values)
    if len(values) <= (HANDLERS if acts else FEW):
        found = _exactly(values)
        found.acts = acts
        return found
    return LoopPlan(TURNS, lambda loop, index: values[index], False, len(values))


def _act(values: list[Value]) -> bool:
    """Elements such as the handlers of an event, or a trainer's callbacks."""
    parts = [
        part for each in values for part in (each.values if isinstance(each, Sequence) else (each,))
    ]
    if any(isinstance(each, (Function, Method, LibraryMethod)) for each in parts):
        return True
    return len({id(each.cls) for each in parts if isinstance(each, Instance)}) > 1


def _plan_of_instance(m: Interpreter, value: Instance, node: ast.AST) -> LoopPlan | None:
    iterate = value.cls.lookup("__iter__")
    if isinstance(iterate, Function):
        found = start(m, iterate, [value], {}, node)
        if isinstance(found, Generator):
            values, whole = elements(m, found, node)
            return LoopPlan(len(values), lambda loop, index: values[index], whole)
        if found is not value:
            return plan(m, found, node)
    following = value.cls.lookup("__next__") or value.cls.lookup("__getitem__")
    if isinstance(following, Function):
        args = [] if following.name.endswith("__next__") else [Unknown("index", loop_variant=True)]
        return LoopPlan(TURNS, lambda loop, index: enter(m, following, [value, *args], {}, node))
    return _plan(m, held, node) if (held := container_in(value)) is not None else None


def _batch(m: Interpreter, loader: Loader, node: ast.AST) -> Tensor:
    """The value that a loader yields: a batch, of whatever structure."""
    made = Tensor(role="batch", loader=loader, graph=False, made=m.place(node))
    made.fetched = m.turns_begun
    return made


def _sample(m: Interpreter, node: ast.AST) -> Tensor:
    return Tensor(role="batch", graph=False, made=m.place(node))


# ------------------------------------------------------------------------------- streams


def _range(m: Interpreter, value: CombinedIterable, node: ast.AST) -> LoopPlan:
    begin, end, stride = value.sources
    known = [each.value for each in (begin, end, stride) if isinstance(each, Constant)]
    if len(known) == 3 and all(isinstance(each, int) for each in known) and known[2]:
        numbers = range(*known)
        if len(numbers) <= TURNS:
            exact = _exactly([Constant(number) for number in numbers])
            exact.listed, exact.counted = False, True
            return exact
        symbol = end.symbol if isinstance(end, Constant) else ""
        return LoopPlan(
            TURNS,
            lambda loop, index: Constant(numbers[index], loop_variant=loop),
            size=symbol or (None if any(map(loop_of, value.sources)) else len(numbers)),
            by_hand=known[2] > 1,
            counted=True,
        )
    one = isinstance(stride, Constant) and stride.value == 1
    zero = isinstance(begin, Constant) and begin.value == 0
    first = begin.value if isinstance(begin, Constant) and isinstance(begin.value, int) else 0
    return LoopPlan(
        TURNS,
        lambda loop, index: Constant(first + index, loop_variant=loop),
        size=m.size(end) if zero and one else f"range({', '.join(map(m.key, value.sources))})",
        by_hand=not one,
        counted=True,
    )


def _enumerate(m: Interpreter, value: CombinedIterable, node: ast.AST) -> LoopPlan:
    inner = plan(m, value.sources[0], node)
    start = value.start.value if isinstance(value.start, Constant) else 0
    base = start if isinstance(start, int) else 0

    def make(loop: Loop, index: int) -> Value:
        number = Constant(base + index, loop_variant=None if inner.complete else loop)
        return Sequence("tuple", [number, inner.make(loop, index)])

    return replace(inner, make=make, listed=False, counted=False)


def _zip(m: Interpreter, value: CombinedIterable, node: ast.AST) -> LoopPlan:
    plans = [plan(m, source, node) for source in value.sources]
    if not plans:
        return _exactly([])
    window = _window_of_streams(m, value.sources)
    finite = [each for each in plans if not each.endless] or plans
    finite = finite if window is None else [plans[window]]
    count = min(each.count for each in finite)

    def make(loop: Loop, index: int) -> Value:
        m.spend(len(plans), node)
        values = [each.make(loop, index) for each in plans]
        return Sequence("tuple", values if window is None else [taken(m, each) for each in values])

    return LoopPlan(
        count,
        make,
        any(each.complete and each.count == count for each in finite),
        finite[0].size if len(finite) == 1 else None,
        next((each.loader for each in plans if each.loader is not None), None),
        all(each.endless for each in plans),
        takes=window is not None,
    )


def _window_of_streams(m: Interpreter, sources: list[Value]) -> int | None:
    """Which source of `zip(range(4), batches)` counts the next few of a generator that is kept."""
    ranges = [
        number
        for number, each in enumerate(sources)
        if isinstance(each, CombinedIterable) and each.kind == "range"
    ]
    streams = sum(isinstance(each, Generator) for each in sources)
    return ranges[0] if m.turns and ranges and streams == len(sources) - 1 else None


def _count(m: Interpreter, value: CombinedIterable, node: ast.AST) -> LoopPlan:
    return LoopPlan(TURNS, lambda loop, index: Constant(index, loop_variant=loop), endless=True)


def _plain(m: Interpreter, value: CombinedIterable, node: ast.AST) -> LoopPlan:
    return plan(m, value.sources[0], node)


def _taken(m: Interpreter, value: CombinedIterable, node: ast.AST) -> LoopPlan:
    """A window of micro-batches: each turn takes the next one of a stream."""
    source, stop = value.sources
    if isinstance(source, Generator):
        values = yielded(m, source, node, TURNS).values
        inner = LoopPlan(len(values), lambda loop, index: values[index])
    else:
        inner = plan(m, source, node)
    most = stop.value if isinstance(stop, Constant) and isinstance(stop.value, int) else TURNS
    return LoopPlan(
        max(0, min(inner.count, most)),
        lambda loop, index: taken(m, inner.make(loop, index)),
        size=m.size(stop),
        loader=inner.loader,
        takes=option_default(m, stop) != 1,
    )


def _windows(m: Interpreter, value: CombinedIterable, node: ast.AST) -> LoopPlan:
    """Each turn has the next few micro-batches of a stream, as many as there are."""
    source, size, with_rest = value.sources
    if isinstance(source, Generator):
        source = yielded(m, source, node, TURNS)
    rest = isinstance(with_rest, Constant) and bool(with_rest.value)
    turns = _number_of_windows(source, size, with_rest=rest)
    return LoopPlan(
        TURNS if turns is None else min(TURNS, turns),
        lambda loop, index: CombinedIterable("taken", [source, size]),
        size=turns,
        windows=True,
    )


def _number_of_windows(source: Value, size: Value, *, with_rest: bool) -> int | None:
    whole = source.length if isinstance(source, Loader) else count_of(source)
    each = size.value if isinstance(size, Constant) and type(size.value) is int else 0
    if not isinstance(whole, int) or each < 1:
        return None
    return -(-whole // each) if with_rest else whole // each


def turns_of_windows(taken: CombinedIterable) -> int | None:
    """Of `while window := list(islice(stream, 4))`."""
    source, size = taken.sources
    while isinstance(source, CombinedIterable) and source.kind == "plain":
        source = source.sources[0]
    return _number_of_windows(source, size, with_rest=True)


_STREAMS = {
    "range": _range, "enumerate": _enumerate, "zip": _zip, "count": _count, "plain": _plain,
    "taken": _taken, "windows": _windows,
}  # fmt: skip


def elements(
    m: Interpreter, value: Value | None, node: ast.AST, most: int = MOST
) -> tuple[list[Value], bool]:
    """The elements of something (a few of them), and whether these are all."""
    if isinstance(value, Generator):
        made = yielded(m, value, node, most)
        return made.values, made.length is not None
    how = plan(m, value, node)
    loop = Loop(place=m.place(node), simulated=how.count)
    return [how.make(loop, index) for index in range(how.count)], how.complete


def following(m: Interpreter, value: CombinedIterable, node: ast.AST) -> Value | None:
    """The next element of an iterator, taken by `next()` in a loop; None if none is left."""
    how, index = plan(m, value, node), value.taken
    value.taken += 1
    if how.count == 0 or (how.complete and index >= how.count):
        return None
    found: Value = how.make(m.turns[-1].loop, min(index, how.count - 1))
    return found
