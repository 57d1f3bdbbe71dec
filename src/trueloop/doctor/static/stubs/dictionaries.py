"""Dicts, and the lists and dicts that classes of the user's extend."""

from __future__ import annotations

import ast
from typing import TypeGuard

from trueloop.doctor.model.arithmetic import is_hashable
from trueloop.doctor.model.things import Thing
from trueloop.doctor.static.interpreter.attributes import item_of
from trueloop.doctor.static.interpreter.keys import put, text_in_turn
from trueloop.doctor.static.interpreter.loop_plans import elements
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, find_method, methods
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    Constant,
    DictValue,
    Function,
    LibraryName,
    Sequence,
    Unknown,
    Value,
)
from trueloop.doctor.static.stubs.optimizers import set_in_group
from trueloop.doctor.static.stubs.options import by_default

_NUMBERS = {"builtins.int": 0, "builtins.float": 0.0}


@calls("collections.defaultdict")
def _defaultdict(call: LibraryCall) -> Value:
    table = DictValue({}, True, turns=call.machine.turns_begun)
    return _begin(table, call.arg(0))


def _begin(table: DictValue, factory: Value | None) -> DictValue:
    """Note what a defaultdict gives for an entry that is not there yet."""
    if isinstance(factory, LibraryName):
        table.begins_with = _NUMBERS.get(factory.name)
    elif isinstance(factory, Function) and isinstance(factory.node, ast.Lambda):
        body = factory.node.body
        if isinstance(body, ast.Constant) and isinstance(body.value, (int, float)):
            table.begins_with = body.value
    return table


@calls("builtins.dict.fromkeys")
def _from_keys(call: LibraryCall) -> Value:
    keys, whole = elements(call.machine, call.arg(0), call.node)
    table = DictValue({}, not whole, turns=call.machine.turns_begun)
    for key in keys:
        put(table, key, call.arg(1, "", NONE))
    return table


@methods(DictValue, "__init__")
def _initialise(call: LibraryCall) -> Value:
    """`super().__init__(list)`, or with entries, in a class that extends a dict."""
    first = call.arg(0)
    if isinstance(first, (LibraryName, Function)):
        _begin(call.receiver, first)
    else:
        _update(call)
        call.receiver.open |= call.open
    return NONE


@methods(Sequence, "__init__")
def _fill(call: LibraryCall) -> Value:
    extend = find_method(call.receiver, "extend")
    assert extend is not None
    return extend(call) if call.args else NONE


@methods(DictValue, "__setitem__")
def _put(call: LibraryCall) -> Value:
    key, value = call.arg(0), call.arg(1)
    if isinstance(key, Constant) and is_hashable(key.value) and not key.loop_variant:
        call.receiver.put(key.value, value)
    else:
        call.receiver.put_somewhere(value)
    return NONE


@methods(DictValue, "items")
def _items(call: LibraryCall) -> Value:
    table: DictValue = call.receiver
    pairs = [Sequence("tuple", [Constant(key), value]) for key, value in table.entries.items()]
    keys: list[Value] = table.keys_of_rest
    if len(keys) != len(table.rest):
        keys = [Unknown(f"key<{call.machine.number(table)}>", loop_variant=True)] * len(table.rest)
    pairs += [Sequence("tuple", [*pair]) for pair in zip(keys, table.rest, strict=True)]
    return Sequence("list", [*pairs], table.open)


@methods(DictValue, "keys")
def _keys(call: LibraryCall) -> Value:
    table: DictValue = call.receiver
    keys = [Constant(key) for key in table.entries]
    return Sequence("list", [*keys, *table.keys_of_rest], table.open)


@methods(DictValue, "values")
def _values(call: LibraryCall) -> Value:
    table: DictValue = call.receiver
    return Sequence("list", [*table.entries.values(), *table.rest], table.open)


@methods(DictValue, "get", "pop", "setdefault")
def _get(call: LibraryCall) -> Value:
    table: DictValue = call.receiver
    key = by_default(call.machine, call.arg(0))
    default = call.arg(1, "", NONE)
    if isinstance(key, Constant) and is_hashable(key.value):
        if key.value in table.entries:
            return table.entries[key.value]
        if call.name == "setdefault":
            table.put(key.value, default)
            return default
    is_known = isinstance(key, Constant) and not table.open
    return default if is_known else call.unknown(table, key, default)


@methods(DictValue, "update")
def _update(call: LibraryCall) -> Value:
    table: DictValue = call.receiver
    source = call.arg(0)
    if isinstance(source, DictValue):
        call.machine.spend(len(source.entries) >> 3, call.node)
        table.merge(source)
    elif source is not None:
        table.open = True
    for key, value in call.kwargs.items():
        set_in_group(call.machine, table, key, value, call.node)
        table.put(key, value)
    return NONE


def _any_of(call: LibraryCall, table: DictValue) -> Value:
    """The value under a key that is not known: one for all, if they are of a kind. Of several
    classes or functions each does something different."""
    kinds = {type(each) for each in table.rest if isinstance(each, Thing)}
    several = len(table.rest) > 1 and any(isinstance(e, (Class, Function)) for e in table.rest)
    return table.rest[0] if len(kinds) < 2 and not several else call.unknown(table, *table.rest)


@methods(DictValue, "__getitem__")
def _table_item(call: LibraryCall) -> Value:
    table: DictValue = call.receiver
    key = call.arg(0)
    known = isinstance(key, Constant) and is_hashable(key.value)
    if isinstance(key, Constant) and known and key.value in table.entries:
        return item_of(call.machine, table, key, call.node)
    if (text := text_in_turn(key)) is not None and text in table.entries:
        return item_of(call.machine, table, Constant(text), call.node)
    if table.rest:
        return _any_of(call, table)
    if isinstance(key, Constant) and table.open:
        # A defaultdict makes what it is asked for.
        number = table.begins_with
        fresh: Value = Sequence("list", [], True, turns=table.turns)
        fresh = fresh if number is None else Constant(number)
        if known:
            table.put(key.value, fresh)
        return fresh
    return call.unknown(table) if isinstance(key, Constant) else _one_row(call, table)


def _one_row(call: LibraryCall, table: DictValue) -> Value:
    """The entry under a key that is not known, of a table such as `{"bert": (BertConfig,
    BertModel), "gpt": (GPTConfig, GPTModel)}`: a row with one class of each column."""
    rows = [each.values for each in table.entries.values() if _is_row(each)]
    whole = not table.open and len(rows) == len(table.entries)
    if not whole or len({len(row) for row in rows}) != 1:
        return call.unknown(table)
    columns = (tuple(column) for column in zip(*rows, strict=True))
    return Sequence("tuple", [call.unknown(*column) for column in columns])


def _is_row(value: Value) -> TypeGuard[Sequence]:
    return (
        isinstance(value, Sequence)
        and not value.open
        and all(isinstance(each, (Class, LibraryName)) for each in value.values)
    )
