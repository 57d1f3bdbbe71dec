"""Sequences of different lengths that become a batch: the values that fill them up."""

from __future__ import annotations

from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls
from trueloop.doctor.static.interpreter.values import (
    Constant,
    Function,
    Instance,
    LibraryName,
    Method,
    Unknown,
    Value,
    constant,
)
from trueloop.doctor.static.stubs.random_draws import aside
from trueloop.doctor.static.stubs.tensors import derive, tensors_in

_PADS = "torch.nn.utils.rnn.pad_sequence"


def padding_of(call: LibraryCall) -> frozenset[float]:
    """The constants with which a loader's `collate_fn` fills sequences up."""
    function = call.arg(6, "collate_fn")
    if not isinstance(function, (Function, Method, Instance)):
        return frozenset()
    m = call.machine
    with aside(m):
        batch = m.call_value(function, [Unknown("samples")], node=call.node)
        noted = [
            each
            for each in m.noted or []
            if isinstance(each.function, LibraryName) and each.function.name == _PADS
        ]
    found = set[float]().union(*(each.padding for each in tensors_in(m, batch, call.node)))
    for each in noted:
        given = each.args[2] if len(each.args) > 2 else None
        found |= _number(each.kwargs.get("padding_value", given))
    return frozenset(found)


@calls(_PADS)
def _pad_sequence(call: LibraryCall) -> Value:
    m = call.machine
    made = derive(m, call.node, *tensors_in(m, call.arg(0, "sequences"), call.node))
    made.padding = _number(call.arg(2, "padding_value")) if not call.open else frozenset()
    return made


def _number(value: Value | None) -> frozenset[float]:
    """The number that `padding_value` names; 0 where it is not given."""
    number = 0 if value is None else constant(value) if isinstance(value, Constant) else None
    return frozenset({number} if isinstance(number, (int, float)) else ())
