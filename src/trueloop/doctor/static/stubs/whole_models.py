"""A module that a file has whole: `model = torch.load("model.pt")`, `model.eval()`, `model(x)`."""

from __future__ import annotations

from trueloop.doctor.model.events import StateDictLoaded
from trueloop.doctor.model.things import Checkpoint, Model
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, find_method, methods
from trueloop.doctor.static.interpreter.values import Value

_MODULE = "<module>"


@methods(Checkpoint, "__call__", "eval", "train", "parameters", "named_parameters", "modules",
         "requires_grad_", "zero_grad", "load_state_dict", "forward")  # fmt: skip
def _of_module(call: LibraryCall) -> Value:
    """Only a module has these."""
    model = _module_in(call)
    method = find_method(model, call.name)
    assert method is not None
    found = method(
        LibraryCall(
            call.machine,
            call.node,
            call.name,
            call.args,
            call.kwargs,
            model,
            call.open,
            call.spread,
        )
    )
    return call.receiver if found is model else found


def _module_in(call: LibraryCall) -> Model:
    """The module, of whose class nothing is known, in the mode that it was saved in."""
    loaded: Checkpoint = call.receiver
    model = loaded.attributes.get(_MODULE)
    if not isinstance(model, Model):
        model = Model(name=loaded.name, made=loaded.made, training=None, complete=False)
        loaded.attributes[_MODULE] = model
        call.emit(StateDictLoaded, thing=model, state=loaded)
    return model
