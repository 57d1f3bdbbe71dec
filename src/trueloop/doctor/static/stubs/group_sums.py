"""Columns that are added up, or averaged, for each group of samples."""

from __future__ import annotations

from trueloop.doctor.model.table_events import SummedByGroup
from trueloop.doctor.model.things import Tensor
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.values import Value
from trueloop.doctor.static.stubs.tensors import derive, tensors_in


@calls("numpy.bincount")
def _bincount(call: LibraryCall) -> Value:
    """Groups are counted, or a column is added up for each of them."""
    found = call.unknown(*call.args, *call.kwargs.values())
    _notice(call, call.arg(1, "weights"), found)
    return found


@calls("torch.bincount")
def _torch_bincount(call: LibraryCall) -> Value:
    weights = call.arg(1, "weights")
    found = derive(call.machine, call.node, *_given(call), graph=weights is not None)
    found.dtype = "int64" if weights is None else None
    _notice(call, weights, found)
    return found


@methods(Tensor, "index_add", "index_add_", "index_reduce", "index_reduce_", "scatter_add",
         "scatter_add_", "scatter_reduce", "scatter_reduce_")  # fmt: skip
def _add_to_groups(call: LibraryCall) -> Value:
    """`torch.zeros(shops).index_add_(0, shop, sales)`."""
    total: Tensor = call.receiver
    column = call.arg(2, "source") or call.kwargs.get("src")
    found = derive(call.machine, call.node, total, *_given(call))
    found.shape, found.dtype = total.shape, total.dtype
    if call.name.endswith("_") and isinstance(column, Tensor) and not found.graph:
        total.of = (*total.of, column)
        found = total
    _notice(call, column, found)
    return found


def _given(call: LibraryCall) -> list[Tensor]:
    given = [*call.args, *call.kwargs.values()]
    return [each for value in given for each in tensors_in(call.machine, value, call.node)]


def _notice(call: LibraryCall, column: Value | None, result: Value) -> None:
    """Inform the rules, outside of loops and models."""
    m = call.machine
    if column is not None and not m.turns and not m.inside_models:
        call.emit(SummedByGroup, column=column, result=result)
