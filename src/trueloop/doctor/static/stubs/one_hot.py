"""Labels as one-hot rows, which a loss by hand multiplies with the outputs and adds up."""

from __future__ import annotations

from trueloop.doctor.model.things import Tensor
from trueloop.doctor.model.value_events import ColumnsPicked
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls
from trueloop.doctor.static.interpreter.values import Value
from trueloop.doctor.static.stubs.tensors import derive, is_over_samples


@calls("torch.nn.functional.one_hot")
def _one_hot(call: LibraryCall) -> Value:
    labels = call.arg(0, "tensor")
    if not isinstance(labels, Tensor):
        return call.unknown(*call.args, *call.kwargs.values())
    made = derive(call.machine, call.node, labels, graph=False)
    made.one_hot_of = labels, None
    return made


def sum_over_classes(call: LibraryCall, summed: Tensor, dim: object) -> None:
    """`(p * one_hot(y)).sum(1)` picks the class of each row."""
    labels, factor = summed.one_hot_of or (None, None)
    if labels is not None and factor is not None and dim in (1, -1) and is_over_samples(factor):
        call.emit(ColumnsPicked, source=factor, columns=labels)
