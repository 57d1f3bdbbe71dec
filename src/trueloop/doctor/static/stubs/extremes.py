"""The largest, the smallest and the sorted values of a tensor, and their indices."""

from __future__ import annotations

from trueloop.doctor.model.things import Activation, Tensor
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.values import Sequence, Value
from trueloop.doctor.static.stubs import tensor_shapes as shapes
from trueloop.doctor.static.stubs.tensor_functions import any_function
from trueloop.doctor.static.stubs.tensors import derive

_PAIRS = ("kthvalue", "mode", "sort", "topk")
"""These give the values and their indices also without a dimension."""


@methods(Tensor, "argmax", "argmin", "max", "min", *_PAIRS)
def _extremes(call: LibraryCall) -> Value:
    m, name, source = call.machine, call.name, call.receiver
    if isinstance(other := call.arg(0), Tensor):
        return derive(m, call.node, source, other)  # the larger of each two
    values, indices = (derive(m, call.node, source, graph=graph) for graph in (True, False))
    indices.dtype = "int64"
    if name in ("argmax", "max", "min", "sort", "topk"):
        indices.activation = Activation("argmax", call.const(0, "dim"), call.place)
    made = indices if name.startswith("arg") else values
    made.shape = shapes.of_method(name, source.shape, call.args, call.kwargs)
    if name in _PAIRS or (made is values and (call.args or call.kwargs)):
        return Sequence("tuple", [values, indices])
    return made


@calls(*(f"torch.{name}" for name in ("argmax", "argmin", "max", "min", *_PAIRS)))
def _function(call: LibraryCall) -> Value:
    source, rest = call.arg(0, "input"), call.args[1:]
    if not isinstance(source, Tensor) or isinstance(call.arg(1), Tensor):
        return any_function(call)
    name = call.name.rpartition(".")[2]
    return _extremes(
        LibraryCall(call.machine, call.node, name, rest, call.kwargs, source, call.open)
    )
