"""A module that a file has whole: `model = torch.load("model.pt")`, `model.eval()`, `model(x)`."""

from __future__ import annotations

import ast

from trueloop.doctor.model.events import StateDictLoaded
from trueloop.doctor.model.things import Checkpoint, Model
from trueloop.doctor.static.interpreter.inference import guess
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, find_method, methods
from trueloop.doctor.static.interpreter.values import Value

_MODULE = "<module>"


@methods(Checkpoint, "__call__", "eval", "train", "parameters", "named_parameters", "modules",
         "requires_grad_", "zero_grad", "load_state_dict", "forward")  # fmt: skip
def _of_module(call: LibraryCall) -> Value:
    """Only a module has these."""
    model = _module_in(call.machine, call.receiver, call.node)
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


def as_part(m: Interpreter, name: str, value: Value, node: ast.AST) -> Value:
    """The value that becomes an attribute of a model: the module in a file, if used as one."""
    if not isinstance(value, Checkpoint):
        return value
    if _MODULE in value.attributes:
        return _module_in(m, value, node)
    meant = guess(m, name, m.unknown(node, (value,)), m.modules[-1])
    return _module_in(m, value, node) if isinstance(meant, Model) else value


def _module_in(m: Interpreter, loaded: Checkpoint, node: ast.AST) -> Model:
    """The module, of whose class nothing is known, in the mode that it was saved in."""
    model = loaded.attributes.get(_MODULE)
    if not isinstance(model, Model):
        model = Model(name=loaded.name, made=loaded.made, training=None, complete=False)
        loaded.attributes[_MODULE] = model
        m.emit(StateDictLoaded, node, thing=model, state=loaded)
    return model
