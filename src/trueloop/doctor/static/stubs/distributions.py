"""Distributions of torch: what their parameters are, whichever of them they were given."""

from __future__ import annotations

from trueloop.doctor.model.things import Tensor
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls
from trueloop.doctor.static.interpreter.values import Value
from trueloop.doctor.static.stubs.tensor_functions import activate
from trueloop.doctor.static.stubs.tensors import derive, tensors_in

_SOFTMAX = ("Categorical", "OneHotCategorical")


@calls(*(f"torch.distributions.{name}" for name in (*_SOFTMAX, "Bernoulli")))
def _distribution(call: LibraryCall) -> Value:
    """Its samples and log-probabilities come from what it is given; its `probs` add up to one."""
    given = call.arg(0, "probs") or call.arg(1, "logits")
    tensors = tensors_in(call.machine, given, call.node) if given is not None else []
    if not tensors:
        return call.unknown(*call.args, *call.kwargs.values())
    made: Tensor = derive(call.machine, call.node, *tensors)
    kind = "softmax" if call.name.endswith(_SOFTMAX) else "sigmoid"
    made.attributes["probs"] = activate(call, given, kind, -1 if kind == "softmax" else None)
    return made
