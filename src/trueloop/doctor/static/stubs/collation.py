"""A loader's `collate_fn`: the values that it pads with."""

from __future__ import annotations

from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall
from trueloop.doctor.static.interpreter.values import (
    Constant,
    Function,
    Instance,
    LibraryName,
    Method,
    Unknown,
    constant,
)
from trueloop.doctor.static.stubs.random_draws import aside

_PADS = "torch.nn.utils.rnn.pad_sequence"


def padding_of(call: LibraryCall) -> frozenset[float]:
    """The constants with which a loader's `collate_fn` fills sequences up."""
    function = call.arg(6, "collate_fn")
    if not isinstance(function, (Function, Method, Instance)):
        return frozenset()
    m = call.machine
    with aside(m):
        m.call_value(function, [Unknown("samples")], node=call.node)
        noted = [
            each
            for each in m.noted or []
            if isinstance(each.function, LibraryName) and each.function.name == _PADS
        ]
    found = set[float]()
    for each in noted:
        value = each.kwargs.get("padding_value", each.args[2] if len(each.args) > 2 else None)
        number = 0 if value is None else constant(value) if isinstance(value, Constant) else None
        if isinstance(number, (int, float)):
            found.add(number)
    return frozenset(found)
