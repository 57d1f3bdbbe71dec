"""Calls that need not be read again: the same function, with arguments of the same kinds.

A metric, a tokenizer or a layer is called again and again. Its body is read for the first call, and
for the second where the first one changed something. If no rule could hear of anything in it, later
calls with arguments of the same kinds take over the result.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from trueloop.doctor.model.arithmetic import is_hashable
from trueloop.doctor.model.known_values import births, shallow_copy
from trueloop.doctor.model.things import Model, Tensor, Thing
from trueloop.doctor.static.interpreter.call_history import CallSummary
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.syntax import size_of
from trueloop.doctor.static.interpreter.values import (
    Class,
    Constant,
    DictValue,
    Function,
    Instance,
    LibraryName,
    Method,
    Module,
    OpaqueObject,
    Sequence,
    Unknown,
    Value,
    inside,
    parts_of,
)

BEARS = frozenset(
    "backward manual_backward zero_grad step train eval load_state_dict state_dict save load"
    " manual_seed seed seed_everything clip_grad_norm_ clip_grad_value_ requires_grad_ set_epoch"
    " unscale_ add_param_group register_hook exec".split()
)
"""Names of calls that rules look at, whatever a particular call of the function came to."""
LONGEST = 12
"""Entries of a container that are compared."""


class _NoKindError(Exception):
    """A value that is like no other."""


WORTH_KEEPING = 25
"""Nodes of a function whose calls are compared with earlier ones."""
DIFFERENT = 8
"""Kinds of calls of a function, after which all texts are alike, and all numbers."""


@dataclass(slots=True)
class _Before:
    """The counts when a call began."""

    heard: int
    written: int
    filled: int
    extended: int
    counts_asked: int
    born: int
    """The number of the container that comes next."""


def summarized(
    m: Interpreter,
    function: Function,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    read: Callable[[], Value],
) -> Value:
    """The result of a call: that of an earlier one like it, or what reading its body gives."""
    if m.noted is not None or not takes_long(function.node):
        return read()
    history, given = m.history, [*args, *kwargs.values()]
    wide = history.kinds.get(id(function.node), 0) > DIFFERENT
    key = _key_of(m, function, args, kwargs, wide)
    if key is None:
        return read()
    summary = history.summaries.get(key)
    if summary is None:
        summary = history.summaries[key] = CallSummary(wanted=3 if wide else 1)
        history.kinds[id(function.node)] = history.kinds.get(id(function.node), 0) + 1
    if not summary.fit:
        return read()
    if summary.reads >= summary.wanted:
        return _repeated(m, summary, function, given, node)
    before = _Before(
        history.heard, len(history.written), len(history.filled), len(history.extended),
        history.counts_asked, next(births),
    )  # fmt: skip
    result = read()
    _keep(m, summary, before, function, given, result)
    return result


def takes_long(node: ast.AST) -> bool:
    """A function is so large that its calls are compared with earlier ones."""
    return size_of(node) >= WORTH_KEEPING


# ------------------------------------------------------------------------------- kinds


def kinds_of(
    args: Iterable[Value], kwargs: dict[str, Value]
) -> tuple[tuple[str, Hashable], ...] | None:
    """The names of arguments, and what is equal for those that are alike; None where one is like
    no other."""
    named = [*(("", each) for each in args), *kwargs.items()]
    try:
        kinds = tuple((name, _kind(each)) for name, each in named)
    except _NoKindError:
        return None
    return kinds if is_hashable(kinds) else None


def _key_of(
    m: Interpreter, function: Function, args: list[Value], kwargs: dict[str, Value], wide: bool
) -> Hashable | None:
    """Equal for calls that are alike; None where a call is like no other."""
    if function.scope.function is not None or len(args) + len(kwargs) > LONGEST:
        return None
    kind_of = _wide_kind if wide else _kind
    try:
        layer = _layer_in(m, function, args)
        if layer is not None:
            kind_of = partial(kind_of, in_layer=True)
        kinds = [_kind_of_layer(layer)] if layer is not None else []
        kinds += [kind_of(each) for each in args[len(kinds) :]]
        kinds += [(name, kind_of(each)) for name, each in kwargs.items()]
    except _NoKindError:
        return None
    modes = m.grad[-1], m.autocast[-1], m.inside_models > 0, bool(m.turns), bool(m.guards)
    key = id(function.node), id(function.scope), *modes, *kinds
    return key if is_hashable(key) else None


def _kind(value: Any, depth: int = 3, *, in_layer: bool = False) -> Hashable:
    """Equal for values that a function treats alike."""
    if isinstance(value, Constant):
        return _kind_of_constant(value)
    if isinstance(value, Unknown):
        own = value.loop_variant or "<" in value.key or "[" in value.key
        parts = () if value.number or not depth else [_kind(each, 0) for each in value.of[:4]]
        key = "" if own else value.key
        return "unknown", key, value.loop_variant, value.number, value.shape, value.dtype, *parts
    if isinstance(value, Tensor):
        return _kind_of_tensor(value, in_layer=in_layer)
    if isinstance(value, (Thing, Instance)):
        return id(value), getattr(value, "training", None), *_flags(value)
    if isinstance(value, (OpaqueObject, Class)):
        return id(value)
    if isinstance(value, LibraryName):
        return value.name
    if isinstance(value, Function):
        return id(value.node), id(value.scope)
    if isinstance(value, Method):
        return id(value.function.node), id(value.receiver)
    if isinstance(value, Sequence) and depth:
        parts = [_kind(each, depth - 1, in_layer=in_layer) for each in value.values[:LONGEST]]
        return value.kind, value.open, value.grown, len(value.values), *parts
    if isinstance(value, DictValue) and depth:
        entries = [
            (key, _kind(each, depth - 1, in_layer=in_layer))
            for key, each in [*value.entries.items()][:LONGEST]
        ]
        return "dict", value.open, len(value.entries), len(value.rest), *entries
    if isinstance(value, (Sequence, DictValue)):
        return id(value)
    raise _NoKindError


def _wide_kind(value: Value, *, in_layer: bool = False) -> Hashable:
    """Texts and numbers are of one kind each; tensors, wherever they come from."""
    if isinstance(value, Constant) and isinstance(value.value, (str, bytes, int, float)):
        return type(value.value), value.modulo is not None
    if isinstance(value, Tensor):
        return _kind_of_tensor(value, in_layer=True)
    return _kind(value, in_layer=in_layer)


def _kind_of_layer(layer: Model) -> Hashable:
    """Layers of one class, made of the same parts, are alike inside of a model."""
    parts = [
        (name, each.kind, each.training, each.asks_mode) for name, each in layer.children.items()
    ]
    return id(layer.cls), layer.training, *parts, *_flags(layer)


def _flags(value: Thing | Instance) -> Iterable[Hashable]:
    """Plain values in its attributes that no loop changes."""
    for name, each in value.attributes.items():
        if isinstance(each, Constant) and not each.loop_variant:
            yield name, each.value if is_hashable(each.value) else None


def _kind_of_constant(value: Constant) -> Hashable:
    if not is_hashable(value.value):
        raise _NoKindError
    known = value.value if value.modulo is not None or not value.loop_variant else None
    return type(value.value), known, bool(value.loop_variant), value.symbol


def _kind_of_tensor(value: Tensor, *, in_layer: bool) -> Hashable:
    """Equal for tensors that a function treats alike; a layer, wherever they come from."""
    if value.terms is not None and value.is_loss:
        raise _NoKindError
    activation = value.activation
    models = bool(value.models) if in_layer else value.models
    return (
        "tensor", value.role, value.graph, models, value.is_loss, value.reduced,
        value.divided, value.criteria, value.shape, value.dtype, value.values, value.position,
        value.requires_grad, value.is_parameter, value.known, bool(value.forwards),
        bool(value.inputs), bool(value.fed_by), id(value.loader), id(value.scaled_by),
        id(value.grad_of), id(value.data_of), id(value.holder),
        activation and (activation.kind, activation.dim),
    )  # fmt: skip


# ------------------------------------------------------------------------------- reading


def _keep(
    m: Interpreter,
    summary: CallSummary,
    before: _Before,
    function: Function,
    given: list[Value],
    result: Value,
) -> None:
    """Keep what a call came to, where rules could not hear of it."""
    summary.reads += 1
    layer = _layer_in(m, function, given)
    if m.history.counts_asked != before.counts_asked:
        summary.fit = False  # `return (i + 1) % n == 0`: the next turn's answer is a different one
    elif m.history.heard != before.heard or _bears(function.module, function.node):
        summary.fit = False
    elif _wrote_outside(m, before, function, given):
        summary.wanted = max(2, summary.wanted)
        changed = set(m.history.extended[before.extended :])
        summary.fit &= layer is None and changed.isdisjoint(map(id, _held(function, given)))
    if not summary.fit:
        return
    known = {id(each) for each in (*given, *_held(function, given))}
    if summary.reads >= summary.wanted:
        summary.same = summary.latest is result or id(result) in known
        summary.fit = summary.same or _can_be_renewed(result, known)
    summary.latest = result
    result = _kept(result, known)
    if summary.wanted == 3 and summary.result is not None:
        result = _joined(m, summary.result, result)
    summary.result, summary.given, summary.guards = result, given, frozenset(m.guards)
    summary.attributes = [dict(_attributes(each)) for each in given]
    summary.layer = tuple(layer.family()) if layer is not None else ()


def _wrote_outside(m: Interpreter, before: _Before, function: Function, given: list[Value]) -> bool:
    """The call has changed something that was there before it."""
    if any(each < before.born for each in m.history.written[before.written :]):
        return True
    filled = m.history.filled[before.filled :]
    if not filled:
        return False
    reached = (part for each in _held(function, given) for part in inside(each, parts_of, 2))
    return not {*filled}.isdisjoint(map(id, reached))


def _kept(value: Value, known: set[int], depth: int = 3) -> Value:
    """A value as it is now: whoever gets it may change it."""
    if id(value) in known or not isinstance(value, (Tensor, Sequence, DictValue)) or not depth:
        return value
    kept = shallow_copy(value)
    if isinstance(kept, Sequence):
        kept.values = [_kept(each, known, depth - 1) for each in kept.values]
    elif isinstance(kept, DictValue):
        kept.entries = {key: _kept(each, known, depth - 1) for key, each in kept.entries.items()}
        kept.rest = [_kept(each, known, depth - 1) for each in kept.rest]
        kept.keys_of_rest = [_kept(each, known, depth - 1) for each in kept.keys_of_rest]
    return kept


def _attributes(value: Value) -> dict[str, Value]:
    return value.attributes if isinstance(value, (Thing, Instance)) else {}


def _held(function: Function, given: Iterable[Value]) -> Iterable[Value]:
    """The values that outlive the call."""
    yield from function.scope.top().variables.values()
    for each in given:
        yield each
        yield from _attributes(each).values()


def _bears(module: Module, node: ast.AST) -> bool:
    """A function may do, in some call, what rules look at: itself, or those of its file that it
    calls."""
    survey = module.survey
    waiting: list[ast.AST] = [node]
    seen: set[int] = set()
    while waiting:
        contents = survey.contents.get(id(waiting.pop()))
        if contents is None or id(contents) in seen:
            continue
        seen.add(id(contents))
        if not BEARS.isdisjoint(contents.names):
            return True
        for name in contents.names & survey.functions.keys():
            waiting += survey.functions[name]
    return False


def _layer_in(m: Interpreter, function: Function, given: list[Value]) -> Model | None:
    """The layer whose method is called inside of a model."""
    first = given[0] if given and m.inside_models and function.owner else None
    return first if isinstance(first, Model) and isinstance(first.cls, Class) else None


def _joined(m: Interpreter, one: Value, other: Value) -> Value:
    """A value that represents both."""
    if one is other:
        return one
    if isinstance(one, Constant) and isinstance(other, Constant) and one.value == other.value:
        return one
    if isinstance(one, Sequence) and isinstance(other, Sequence) and one.kind == other.kind:
        pairs = zip(one.values, other.values, strict=False)
        same = len(one.values) == len(other.values) and not one.open and not other.open
        return Sequence(one.kind, [_joined(m, *pair) for pair in pairs], not same)
    if isinstance(one, DictValue) and isinstance(other, DictValue):
        shared = one.entries.keys() & other.entries.keys()
        entries = {key: _joined(m, one.entries[key], other.entries[key]) for key in shared}
        return DictValue(entries, True, [*one.rest, *other.rest])
    numbers = all(isinstance(each, Constant) or _is_number(each) for each in (one, other))
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.shape != other.shape:
            other = shallow_copy(other)
            other.shape = None
        return other
    return Unknown(f"<{m.number(one)}>", (one, other), number=numbers)


def _is_number(value: Value) -> bool:
    return isinstance(value, Unknown) and value.number


# ------------------------------------------------------------------------------- taking over


def _can_be_renewed(value: Any, known: set[int], depth: int = 3) -> bool:
    """A result of the same kind can be made for a later call."""
    if id(value) in known or isinstance(value, (Constant, LibraryName, Function, Class)):
        return True
    if isinstance(value, Unknown):
        return not value.attributes
    if isinstance(value, Tensor):
        return value.terms is None and value.role != "parameter" and value.grad_of is None
    if isinstance(value, Sequence) and depth and len(value.values) <= LONGEST:
        return all(_can_be_renewed(each, known, depth - 1) for each in value.values)
    if isinstance(value, DictValue) and depth and len(value.entries) <= LONGEST:
        parts = [*value.entries.values(), *value.rest[:LONGEST]]
        return all(_can_be_renewed(each, known, depth - 1) for each in parts)
    return False


@dataclass(slots=True)
class _Repeat:
    """A call whose result is made after that of an earlier one."""

    m: Interpreter
    node: ast.AST
    places: dict[int, Value]
    """The earlier call's arguments, by identity -> those of this call."""
    known: set[int]
    """Values that were there before the call, by identity."""
    inner: frozenset[Model] = frozenset()
    """The earlier call's layer, with its parts."""
    layer: Model | None = None
    behind: frozenset[Model] = frozenset()
    """The modules that the earlier call's arguments came from."""
    guards: frozenset[str] = frozenset()
    """The open conditions around the earlier call."""
    leaves: frozenset[Tensor] = frozenset()
    """The leaves that the earlier call's arguments came from, or were."""
    same_owner: bool = False
    """Both calls have the same objects: what the result owes to their parameters stays."""


def _repeated(
    m: Interpreter, summary: CallSummary, function: Function, given: list[Value], node: ast.AST
) -> Value:
    """The result of a call that is not read."""
    m.spend(1, node)
    places = {id(old): new for old, new in zip(summary.given, given, strict=True)}
    for before, each in zip(summary.attributes, given, strict=True):
        for name, now in _attributes(each).items():
            old = before.get(name, now)
            if old is not now and not isinstance(old, Constant):
                places.setdefault(id(old), now)
    repeat = _Repeat(m, node, places, {id(each) for each in _held(function, given)})
    repeat.guards, repeat.behind = summary.guards, _models_behind(summary.given)
    repeat.leaves = _leaves_behind(summary.given)
    repeat.same_owner = all(
        old is new
        for old, new in zip(summary.given, given, strict=True)
        if isinstance(old, (Instance, Thing)) and not isinstance(old, Tensor)
    )
    layer = _layer_in(m, function, given)
    if layer is not None and summary.layer:
        for old, new in zip(summary.layer, layer.family(), strict=False):
            new.asks_mode |= old.asks_mode
        repeat.inner, repeat.layer = frozenset(summary.layer), layer
    if summary.same and summary.latest is not None and id(summary.latest) not in places:
        return summary.latest
    return _renewed(repeat, summary.result)


def _renewed(repeat: _Repeat, value: Any) -> Value:
    m, places = repeat.m, repeat.places
    if id(value) in places:
        return places[id(value)]
    if id(value) in repeat.known or not isinstance(value, (Unknown, Tensor, Sequence, DictValue)):
        assert isinstance(value, Value)
        return value
    if isinstance(value, Unknown):
        if not value.loop_variant and "<" not in value.key:
            return value
        fresh = m.unknown(repeat.node, _read_off(repeat, value))
        fresh.number, fresh.loop_variant = value.number, value.loop_variant
        return fresh
    made = shallow_copy(value)
    if isinstance(made, Tensor):
        _fill(repeat, made)
    elif isinstance(made, Sequence):
        made.values = [_renewed(repeat, each) for each in made.values]
        made.turns = m.turns_begun
    else:
        made.entries = {key: _renewed(repeat, each) for key, each in made.entries.items()}
        made.rest = [_renewed(repeat, each) for each in made.rest]
        made.keys_of_rest = [_renewed(repeat, each) for each in made.keys_of_rest]
        made.turns = m.turns_begun
    return made


def _read_off(repeat: _Repeat, value: Unknown) -> Iterable[Value]:
    """The values that an unknown one is computed from: arguments, or the tensor that it is of."""
    source = value.of[0] if len(value.of) == 1 else None
    if not value.number:
        return repeat.places.values() if value.of else ()
    if isinstance(source, Tensor) and _can_be_renewed(source, repeat.known):
        return [_renewed(repeat, source)]
    return ()


def _fill(repeat: _Repeat, made: Tensor) -> None:
    """Give a tensor the history of this call's arguments."""
    tensors = [each for each in repeat.places.values() if isinstance(each, Tensor)]
    made.made, made.attributes = repeat.m.place(repeat.node), dict(made.attributes)
    if made.fetched:
        given = [each.fetched for each in tensors if each.fetched]
        made.fetched = min(given, default=repeat.m.turns_begun)
    if made.forwards:
        made.forwards = frozenset().union(*(each.forwards for each in tensors))
    if made.fed_by:
        made.fed_by = frozenset().union(*(each.fed_by for each in tensors))
    if made.inputs:
        own = made.inputs - repeat.leaves if repeat.same_owner else frozenset[Tensor]()
        made.inputs = own | _leaves_behind(tensors)
    activation, now = made.activation, repeat.m.guards
    if activation is not None and repeat.guards != frozenset(now):
        guards = activation.guards - repeat.guards | frozenset(now)
        made.activation = activation._replace(guards=guards if activation.guards else frozenset())
    came = made.models & repeat.behind
    if repeat.layer is not None and not repeat.inner.isdisjoint(made.models):
        made.models = made.models - repeat.inner | {repeat.layer}
    if came:
        made.models = made.models - came | _models_behind(tensors)


def _leaves_behind(values: Iterable[Value]) -> frozenset[Tensor]:
    """The leaves that some values came from, or are."""
    tensors = [each for each in values if isinstance(each, Tensor)]
    leaves = frozenset(each for each in tensors if each.requires_grad)
    return leaves.union(*(each.inputs for each in tensors))


def _models_behind(values: Iterable[Value]) -> frozenset[Model]:
    """The modules whose outputs are among some values."""
    found = (each.models for each in values if isinstance(each, Tensor))
    return frozenset().union(*found)
