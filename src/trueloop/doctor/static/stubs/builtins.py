"""Python's own functions, and those of its standard library that loops are made of."""

from __future__ import annotations

import ast
import math
from contextlib import suppress
from operator import attrgetter
from typing import Any

from trueloop.doctor.model.arithmetic import is_hashable
from trueloop.doctor.model.things import (
    Dataset,
    Loader,
    Model,
    Optimizer,
    Sampler,
    Scaler,
    Scheduler,
    StateDict,
    Tensor,
)
from trueloop.doctor.static.interpreter.attributes import read, write
from trueloop.doctor.static.interpreter.conditions import instance_of
from trueloop.doctor.static.interpreter.generators import MOST, yielded
from trueloop.doctor.static.interpreter.growing_lists import extend
from trueloop.doctor.static.interpreter.imports import value_in
from trueloop.doctor.static.interpreter.list_lengths import count_of
from trueloop.doctor.static.interpreter.loop_plans import elements, following
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    CombinedIterable,
    Constant,
    DictValue,
    Function,
    Generator,
    Instance,
    LibraryName,
    Method,
    Namespace,
    OpaqueObject,
    Parameters,
    Sequence,
    Unknown,
    Value,
    constant,
    kept,
)
from trueloop.doctor.static.stubs.checkpoints import state_of_pairs
from trueloop.doctor.static.stubs.containers import free_name, named_so
from trueloop.doctor.static.stubs.options import by_default
from trueloop.doctor.static.stubs.padded_lists import filled_up
from trueloop.doctor.static.stubs.settings import changeable, overridden
from trueloop.doctor.static.stubs.tensors import add_up


@calls("builtins.range")
def _range(call: LibraryCall) -> Value:
    if len(call.args) == 1:
        return CombinedIterable("range", [Constant(0), call.args[0], Constant(1)])
    begin, end = call.arg(0, "", Constant(0)), call.arg(1, "", call.unknown())
    return CombinedIterable("range", [begin, end, call.arg(2, "", Constant(1))])


@calls("builtins.enumerate")
def _enumerate(call: LibraryCall) -> Value:
    start = call.arg(1, "start", Constant(0))
    return CombinedIterable("enumerate", [call.arg(0, "iterable", call.unknown())], start)


@calls("builtins.zip", "itertools.zip_longest")
def _zip(call: LibraryCall) -> Value:
    return call.unknown(*call.args) if call.open else CombinedIterable("zip", list(call.args))


@calls(
    "builtins.iter", "builtins.reversed", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm",
    "tqdm.notebook.tqdm_notebook", "tqdm.tqdm_notebook", "itertools.islice", "itertools.cycle",
    "rich.progress.track", "fastprogress.progress_bar", "fastprogress.master_bar", "tqdm.std.tqdm",
    "tqdm.asyncio.tqdm", "tqdm.rich.tqdm", "tqdm.autonotebook.tqdm", "alive_progress.alive_it",
)  # fmt: skip
def _through(call: LibraryCall) -> Value:
    """Functions that go through their first argument, element by element."""
    source = call.arg(0, "iterable")
    if source is None:
        return call.unknown()
    if isinstance(source, (Sequence, DictValue)) and call.name == "builtins.reversed":
        values = source.values[::-1] if isinstance(source, Sequence) else []
        return Sequence("list", values, not isinstance(source, Sequence) or source.open)
    if call.name == "itertools.islice" and _goes_on(call):
        return CombinedIterable("taken", [source, call.args[1]])
    cuts = call.name in ("itertools.islice", "itertools.cycle")
    return CombinedIterable("plain", [source], Constant(call.name) if cuts else None)


def _goes_on(call: LibraryCall) -> bool:
    """`islice(batches, 4)` in each turn of a loop: the next four of an iterator that is kept."""
    given = getattr(call.node, "args", [])
    return (
        bool(call.machine.turns)
        and len(call.args) == 2
        and not call.open
        and isinstance(given[0], (ast.Name, ast.Attribute))
        and isinstance(call.args[0], (Generator, CombinedIterable, Loader, Unknown))
    )


@calls("itertools.batched", "more_itertools.batched", "more_itertools.chunked",
       "toolz.partition_all")  # fmt: skip
def _batched(call: LibraryCall) -> Value:
    """Lists of the next few elements; toolz has them in the other order."""
    if len(call.args) != 2 or call.open:
        return call.unknown(*call.args)
    source, size = reversed(call.args) if "toolz" in call.name else call.args
    return CombinedIterable("windows", [source, size, Constant(value=True)])


@calls("tqdm.trange", "tqdm.auto.trange", "tqdm.autonotebook.trange", "tqdm.std.trange",
       "tqdm.notebook.trange", "tqdm.tnrange")  # fmt: skip
def _trange(call: LibraryCall) -> Value:
    return _range(call)


@calls("itertools.count")
def _count(call: LibraryCall) -> Value:
    return CombinedIterable("count", [])


@calls("itertools.chain")
def _chain(call: LibraryCall) -> Value:
    parts = [arg for arg in call.args if isinstance(arg, Parameters)]
    if parts and len(parts) == len(call.args):
        return _joined(parts)
    return Sequence("list", [each for arg in call.args for each in _listed(call, arg)[0]], True)


def _joined(parts: list[Parameters]) -> Parameters:
    return Parameters(
        [model for part in parts for model in part.models],
        [tensor for part in parts for tensor in part.tensors],
        all(part.complete for part in parts),
        any(part.part for part in parts),
    )


def _listed(call: LibraryCall, value: Value | None) -> tuple[list[Value], bool]:
    return elements(call.machine, value, call.node)


@calls("builtins.list", "builtins.tuple", "builtins.set", "builtins.sorted", "builtins.frozenset")
def _list(call: LibraryCall) -> Value:
    kind = call.name.rpartition(".")[2].replace("sorted", "list")
    source = call.arg(0)
    now = call.machine.turns_begun
    if source is None:
        return Sequence(kind, [], turns=now)
    if isinstance(source, (Parameters, Loader, Dataset)):
        return source
    if isinstance(source, CombinedIterable) and source.kind == "taken":
        return source
    if isinstance(source, (Unknown, OpaqueObject)):
        return call.unknown(source)
    if isinstance(source, Generator):
        made = yielded(call.machine, source, call.node, MOST)
        made.kind = kind
        return made
    values, whole = _listed(call, source)
    made = Sequence(kind, values, not whole, call.place, now)
    if kind in ("list", "tuple") and made.length != count_of(source):
        made.total = count_of(source)
        made.uncounted = made.total is None
    return made


@calls("builtins.dict", "collections.OrderedDict")
def _dict(call: LibraryCall) -> Value:
    given = {name: kept(value, name) for name, value in call.kwargs.items()}
    table = DictValue(given, call.open, turns=call.machine.turns_begun)
    source = call.arg(0)
    if isinstance(source, Sequence) and not given:
        source = state_of_pairs(source, call.node) or source
    if isinstance(source, DictValue):
        given, table.entries = table.entries, {}
        table.merge(source)
        table.entries |= given
    elif isinstance(source, Sequence):
        table.open |= source.open
        for pair in source.values:
            if isinstance(pair, Sequence) and len(pair.values) == 2:
                key, value = pair.values
                if isinstance(key, Constant) and is_hashable(key.value):
                    table.put(key.value, value)
                else:
                    table.put_somewhere(value)
    elif isinstance(source, StateDict) and not table.entries:
        return source  # a different dictionary, of the same live tensors
    elif source is not None:
        table.open = True
    return table


@calls("collections.deque")
def _deque(call: LibraryCall) -> Value:
    # With a length it forgets what it was given: nothing stays in it.
    bounded = call.arg(1, "maxlen") is not None
    return Sequence("deque" if bounded else "list", [], True, turns=call.machine.turns_begun)


@calls("builtins.len")
def _len(call: LibraryCall) -> Value:
    value = call.arg(0, "", call.unknown())
    if isinstance(value, Sequence) and value.length is not None:
        return Constant(value.length)
    if isinstance(value, DictValue) and not value.open:
        return Constant(len(value.entries))
    if isinstance(value, Constant) and isinstance(value.value, (str, tuple, bytes)):
        return Constant(len(value.value))
    size = getattr(value, "length", None) or getattr(value, "size", None)
    if isinstance(value, CombinedIterable) and value.kind == "taken":
        return value.sources[1]
    if isinstance(size, int):
        return Constant(size)
    if isinstance(value, (Tensor, Unknown)) and value.shape and isinstance(value.shape[0], int):
        return Constant(value.shape[0])
    cls = value.cls if isinstance(value, (Instance, Dataset)) else None
    if isinstance(cls, Class) and isinstance(value, (Instance, Dataset)):
        found = cls.lookup("__len__")
        if isinstance(found, Function):
            return call.machine.call_value(Method(value, found), [], node=call.node)
    key = size if isinstance(size, str) else f"len({call.machine.key(value)})"
    return Unknown(key, (value,), loop_variant=isinstance(value, Tensor), number=True)


@calls("builtins.next")
def _next(call: LibraryCall) -> Value:
    value = call.arg(0)
    if isinstance(value, CombinedIterable) and call.machine.turns:
        return following(call.machine, value, call.node) or call.arg(1) or call.unknown(value)
    if isinstance(value, (Loader, CombinedIterable, Sequence, Parameters)):
        values, _ = _listed(call, value)
        if values:
            return values[0]
    if isinstance(value, Instance):
        found = value.cls.lookup("__next__")
        if isinstance(found, Function):
            return call.machine.call_value(Method(value, found), [], node=call.node)
    if isinstance(value, Generator):
        # What else it does between its values is seen the first time.
        most, value.begun = 1 if value.begun else 64, True
        values, _ = elements(call.machine, value, call.node, most)
        if values:
            return values[0]
    found = call.unknown(value)
    found.loop_variant = bool(call.machine.turns)
    return found


@calls("builtins.map")
def _map(call: LibraryCall) -> Value:
    if len(call.args) != 2:
        return call.unknown(*call.args)
    function, source = call.args
    values, whole = _listed(call, source)
    results = [call.machine.call_value(function, [each], node=call.node) for each in values]
    return Sequence("list", results, not whole, call.place, call.machine.turns_begun)


@calls("builtins.filter")
def _filter(call: LibraryCall) -> Value:
    source = call.arg(1)
    if isinstance(source, Parameters):
        return Parameters(source.models, source.tensors, source.complete, True)
    values, _ = _listed(call, source)
    return Sequence("list", values, True, call.place, call.machine.turns_begun)


@calls("builtins.isinstance")
def _isinstance(call: LibraryCall) -> Value:
    if len(call.args) != 2:
        return call.unknown(*call.args)
    return instance_of(call.machine, call.args[0], call.args[1], call.node)


@calls("torch.is_tensor")
def _is_tensor(call: LibraryCall) -> Value:
    kind = LibraryName("torch.Tensor")
    return instance_of(call.machine, call.arg(0, "obj", call.unknown()), kind, call.node)


@calls("builtins.getattr")
def _getattr(call: LibraryCall) -> Value:
    name = call.const(1)
    if isinstance(call.args[0], (LibraryName, Namespace)):
        name = constant(by_default(call.machine, call.arg(1)))
    if not isinstance(name, str):
        layer = named_so(call.args[0], call.arg(1))
        return layer if layer is not None else call.unknown(*call.args)
    return read(call.machine, call.args[0], name, call.node)


@calls("builtins.setattr")
def _setattr(call: LibraryCall) -> Value:
    if len(call.args) != 3:
        return NONE
    owner, named, value = call.args
    if isinstance(owner, Unknown) and isinstance(value, Model):
        # `setattr(reduce(getattr, path, model), last, part)`: it becomes a part of the model.
        owner = next((each for each in owner.of if isinstance(each, Model)), owner)
        named = named if owner is call.args[0] else call.unknown(named)
    name = constant(named)
    if isinstance(name, str):
        write(call.machine, owner, name, value, call.node)
    elif isinstance(owner, Model):
        write(call.machine, owner, free_name(owner, named), value, call.node)
    elif isinstance(owner, Instance):
        overridden(owner)
    elif isinstance(owner, OpaqueObject):
        changeable(owner)
    return NONE


_OF_STATE = ("state_dict", "load_state_dict")
_OF_TENSORS = frozenset(
    "item detach cpu numpy tolist data backward grad grad_fn requires_grad shape size dim dtype"
    " device mean".split()
)


@calls("builtins.hasattr")
def _hasattr(call: LibraryCall) -> Value:
    value, name = call.arg(0), call.const(1)
    if isinstance(value, (Instance, Model)) and isinstance(name, str) and value.cls is not None:
        inside = name in value.attributes or value.cls.lookup(name) is not None
        if inside or (isinstance(value, Model) and name in value.children):
            return Constant(True)
    if isinstance(value, (Model, Optimizer, Scheduler, Scaler)) and name in _OF_STATE:
        return Constant(True)
    if isinstance(value, Tensor) and value.graph and name in _OF_TENSORS:
        return Constant(True)
    if name == "set_epoch" and isinstance(value, Sampler) and value.kind.startswith("torch."):
        return Constant(value.kind.endswith(".DistributedSampler"))
    if isinstance(value, Constant) and isinstance(name, str):
        return Constant(hasattr(value.value, name))
    if isinstance(value, Model) and name == "module" and value.complete and not value.wrapper:
        return Constant(False)
    return Unknown(f"hasattr({call.machine.key(value)}, {name!r})", tuple(call.args))


@calls("builtins.float", "builtins.int", "builtins.str", "builtins.bool", "builtins.round",
       "builtins.abs")  # fmt: skip
def _convert(call: LibraryCall) -> Value:
    value = call.arg(0)
    short = call.name.rpartition(".")[2]
    if isinstance(value, Constant):
        kind: Any = {"float": float, "int": int, "str": str, "bool": bool, "round": round,
                     "abs": abs}[short]  # fmt: skip
        try:
            return Constant(kind(value.value), loop_variant=value.loop_variant)
        except (TypeError, ValueError, OverflowError):
            return call.unknown(value)
    if isinstance(value, Unknown) and short != "bool":
        return Unknown(value.key, (value,), loop_variant=value.loop_variant, number=True)
    found = call.unknown(*call.args)
    found.number = short != "abs" or not isinstance(value, Tensor)
    return found


@calls("math.ceil", "math.floor")
def _whole_number(call: LibraryCall) -> Value:
    value = call.arg(0)
    if isinstance(value, Constant) and isinstance(value.value, (int, float)):
        with suppress(ValueError, OverflowError):  # of infinity, or of no number
            whole = (math.ceil if call.name == "math.ceil" else math.floor)(value.value)
            return Constant(whole, loop_variant=value.loop_variant)
    found = call.unknown(*call.args)
    found.number = True
    return found


@calls("builtins.sum", "builtins.min", "builtins.max")
def _fold(call: LibraryCall) -> Value:
    short = call.name.rpartition(".")[2]
    source = call.arg(0)
    if short == "sum" and isinstance(source, (Sequence, Unknown, DictValue)):
        return add_up(call.machine, source, call.node)
    numbers = [arg for arg in call.args if isinstance(arg, Constant)]
    if len(numbers) == len(call.args) > 1 and short != "sum" and not call.kwargs:
        try:
            chosen = (min if short == "min" else max)(numbers, key=attrgetter("value"))
        except TypeError:
            return call.unknown(*call.args)
        # `max(count, 1)` is the count, which the loops change.
        fixed = all(each.value == 1 for each in numbers if each is not chosen)
        return Constant(chosen.value, loop_variant=chosen.loop_variant if fixed else False)
    keys = ", ".join(call.machine.key(arg) for arg in call.args)
    return call.machine.unknown(call.node, call.args, key=f"{short}({keys})")


@calls("builtins.exec")
def _exec(call: LibraryCall) -> Value:
    """It may give any variable of the file a new value: those with options do not keep theirs
    (`exec(open("configurator.py").read())`)."""
    scope = call.machine.namespaces.get(id(call.machine.modules[-1]))
    if scope is None:
        return NONE
    for name in [*scope.waiting]:
        value_in(call.machine, scope, name)
    for name, value in scope.variables.items():
        if isinstance(value, Constant) and not name.startswith("__"):
            scope.variables[name] = Unknown(name, number=True)
    return NONE


@calls("builtins.print")
def _print(call: LibraryCall) -> Value:
    return NONE


@calls("builtins.type")
def _type(call: LibraryCall) -> Value:
    value = call.arg(0)
    cls = getattr(value, "cls", None)
    return cls if isinstance(cls, Class) else call.unknown(*call.args)


# ------------------------------------------------------------------------------- containers


def _holder(call: LibraryCall) -> ast.expr:
    """How the container is written; nameless where the method was bound first: `add = seen.add`."""
    function = call.node.func if isinstance(call.node, ast.Call) else None
    return function.value if isinstance(function, ast.Attribute) else ast.Name("list")


@methods(Sequence, "append", "add", "appendleft")
def _append(call: LibraryCall) -> Value:
    if call.receiver.kind == "deque":
        return NONE
    extend(call.machine, call.receiver, call.args, _holder(call), call.node)
    return NONE


@methods(Sequence, "extend", "update")
def _extend(call: LibraryCall) -> Value:
    source = call.arg(0)
    if isinstance(source, Parameters):
        call.receiver.add(source)
        call.receiver.open = True
        return NONE
    values, whole = _listed(call, source)
    filled_up(call.receiver, [source] if source is not None else [])
    if not whole or count_of(source) != len(values):
        call.receiver.uncounted = True
    extend(call.machine, call.receiver, values, _holder(call), call.node)
    call.receiver.open |= not whole
    return NONE


@methods(Sequence, "insert")
def _insert(call: LibraryCall) -> Value:
    for value in call.args[1:]:
        call.receiver.add(value)
    call.receiver.uncounted |= call.receiver.total is not None
    return NONE


@methods(Sequence, "clear")
def _clear(call: LibraryCall) -> Value:
    call.machine.history.empty()
    call.receiver.values.clear()
    call.receiver.turns, call.receiver.total = call.machine.turns_begun, None
    call.receiver.uncounted, call.receiver.grown = bool(call.machine.guards), False
    return NONE


@methods(Sequence, "pop", "popleft")
def _pop(call: LibraryCall) -> Value:
    items: Sequence = call.receiver
    items.uncounted |= items.total is not None
    return items.values.pop() if items.values else call.unknown(items)


@methods(Parameters, "__getitem__")
def _parameters_item(call: LibraryCall) -> Value:
    source: Parameters = call.receiver
    return Parameters(source.models, source.tensors, source.complete, True)
