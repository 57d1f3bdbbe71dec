"""Modules: making them, calling them, their modes and their parameters."""

from __future__ import annotations

import ast
import re
from typing import Any

from trueloop.doctor.model.events import (
    FlagsSet,
    Loss,
    Made,
    ModelForward,
    Moved,
    Used,
    ZeroGrad,
)
from trueloop.doctor.model.things import Activation, Criterion, Model, Size, Tensor
from trueloop.doctor.model.vocabulary import WITHOUT_FRACTION
from trueloop.doctor.static.interpreter.calls import start
from trueloop.doctor.static.interpreter.fetches import inputs_fetched_at
from trueloop.doctor.static.interpreter.parameter_binding import takes
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import layers_only_called, written
from trueloop.doctor.static.interpreter.user_objects import is_loss_module
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    Constant,
    DictValue,
    Function,
    Instance,
    OpaqueObject,
    Parameters,
    Sequence,
    Unknown,
    Value,
    constant,
)
from trueloop.doctor.static.stubs.containers import fill, is_sequential
from trueloop.doctor.static.stubs.dropout_modes import notice_dropout_of_a_call
from trueloop.doctor.static.stubs.modes import apply_switches
from trueloop.doctor.static.stubs.options import dropout_rate, positional_eps
from trueloop.doctor.static.stubs.tensors import derive, tensors_in
from trueloop.doctor.static.stubs.thawing import thaws_later

_PASS_THROUGH = frozenset("Flatten Unflatten Identity Dropout Dropout2d Dropout3d".split())
_BATCH_NORMS = frozenset("BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm".split())
_SWITCHED = frozenset(
    f"torch.nn.{name}" for name in (*_BATCH_NORMS, "Dropout", "Dropout1d", "Dropout2d", "Dropout3d")
)
_LINEAR = frozenset(
    "Linear Bilinear LazyLinear Conv1d Conv2d Conv3d ConvTranspose2d LazyConv2d".split()
)


@calls("torch.nn.*")
def _layer(call: LibraryCall) -> Value:
    """A layer, or a container of layers."""
    short = call.name.rpartition(".")[2]
    if not short[:1].isupper():
        return call.arg(0, "", call.unknown())
    model = Model(kind=call.name, made=call.place, known=True)
    model.arguments = {name: constant(value) for name, value in call.kwargs.items()}
    model.guards = frozenset(call.machine.guards)
    if short in ("Sequential", "ModuleList", "ModuleDict"):
        fill(call, model, short)
    elif short.startswith(("Dropout", "AlphaDropout")):
        model.arguments["p"] = dropout_rate(call.machine, call.arg(0, "p", Constant(0.5)))
    elif short == "Linear" and len(call.args) > 1:
        model.arguments["out_features"] = constant(call.args[1])
    elif short in ("Softmax", "LogSoftmax") and call.args:
        model.arguments["dim"] = constant(call.args[0])
    elif short.startswith("Transformer"):
        _note_dropout_of_transformer(call, model, short)
    elif short in _BATCH_NORMS:
        model.eps = positional_eps(call)
    for name, value in call.kwargs.items():
        if isinstance(value, Model):
            model.children[name] = value
    dropped = layers_only_called(call.machine.modules[-1].tree)
    call.emit(Made, thing=model, dropped=id(call.node) in dropped)
    return model


def _note_dropout_of_transformer(call: LibraryCall, model: Model, short: str) -> None:
    """An encoder or decoder has the dropout of the layer that it copies."""
    if short in ("TransformerEncoder", "TransformerDecoder"):
        layer = call.arg(0, f"{short[11:].lower()}_layer")
        if isinstance(layer, Model) and layer.mode_dependent is False:
            model.arguments["p"] = 0.0
        return
    rate = call.arg(5 if short == "Transformer" else 3, "dropout")
    if rate is not None:
        model.arguments["p"] = dropout_rate(call.machine, rate)


_ZOOS = ("torchvision.models.*", "timm.*", "segmentation_models_pytorch.*",
         "efficientnet_pytorch.*", "pytorch_fid.inception.*", "monai.networks.nets.*",
         "sentence_transformers.*", "peft.*", "torch.hub.load")  # fmt: skip

_PRETRAINED = ("pretrained", "weights")
_NO_NETWORKS = ("Config", "Example", "Evaluator", "Trainer", "Arguments", "Sampler", "Callback")


@calls(*_ZOOS)
def _from_zoo(call: LibraryCall) -> Value:
    """A network that a library builds: its inside is not known."""
    short = call.name.rpartition(".")[2]
    if "loss" in short.lower() or "optim" in call.name or "data" in call.name or "sched" in short:
        return call.unknown(*call.args, *call.kwargs.values())
    if "transform" in call.name.lower().removeprefix("sentence_transformers"):
        return call.unknown(*call.args)
    if ".utils." in call.name or short.endswith(_NO_NETWORKS):
        return call.unknown(*call.args, *call.kwargs.values())
    made = _foreign_model(call)
    asked = [constant(call.kwargs[name], True) for name in _PRETRAINED if name in call.kwargs]
    made.pretrained = any(asked) or call.name.startswith("pytorch_fid.")
    return made


def _foreign_model(call: LibraryCall) -> Model:
    model = Model(kind=call.name, made=call.place, known=True, complete=False)
    call.emit(Made, thing=model)
    return model


# ------------------------------------------------------------------------------- calling


@methods(Model, "__call__")
def _call(call: LibraryCall) -> Value:
    m, model = call.machine, call.receiver
    own = model.cls.lookup("__call__") if isinstance(model.cls, Class) else None
    # The class's own `__call__` may reach torch's by `super()`.
    if isinstance(own, Function) and all(node is not own.node for _, node in m.calls):
        rest: list[Value] | None = [] if call.open else None
        return start(m, own, [model, *call.args], call.kwargs, call.node, rest)
    if model.kind.startswith("torch.nn.") and "Dropout" in model.kind:
        notice_dropout_of_a_call(call)
    return run_forward(call, direct=False)


@methods(Model, "forward")
def _forward(call: LibraryCall) -> Value:
    m, function = call.machine, getattr(call.node, "func", None)
    spelled = isinstance(function, ast.Attribute) and function.attr == "forward"
    inside = any(_may_be_module(receiver) for receiver in m.receivers)
    if spelled and inside and call.receiver not in m.receivers:
        call.emit(Used, what="torch.nn.Module.forward", subject=call.receiver)
    return run_forward(call, direct=spelled and not inside)


_PLAIN = ("builtins.object", "object", "abc.", "typing.", "enum.", "collections.", "dataclasses.")


def _may_be_module(receiver: Value) -> bool:
    """A module, or an object of a class whose bases are not all known."""
    if not isinstance(receiver, Instance):
        return isinstance(receiver, Model)
    bases = [kind for kind in receiver.cls.lineage() if not isinstance(kind, Class)]
    return any(not getattr(base, "name", "").startswith(_PLAIN) for base in bases)


def run_forward(call: LibraryCall, *, direct: bool, functional: bool = False) -> Value:
    """Call a module: what comes out, with the module in its history."""
    m, model = call.machine, call.receiver
    m.spend(1, call.node)
    outer = m.inside_models == 0 and not is_loss_module(model)
    training = model.training
    if outer:
        m.switched_on = []
    if training and model.kind in _SWITCHED:
        m.switched_on.append(model)
    m.inside_models += 1
    try:
        with m.nested(call.node) as may_go:
            result = _through(call, model) if may_go else call.unknown(*call.args)
    finally:
        m.inside_models -= 1
    serial = m.serial + 1 if outer else 0
    result = _mark(call, result, model, serial)
    if outer:
        call.emit(
            ModelForward,
            model=model,
            training=training,
            inputs=tuple(call.args),
            on_models=any(isinstance(each, Model) for each in (*call.args, *call.kwargs.values())),
            output=result,
            direct=direct,
            functional=functional,
            grad_known=m.grad[-1] is not None and not _is_wanted(m.grad),
            fetched=inputs_fetched_at(m, [*call.args, *call.kwargs.values()]),
            result_used=call.result_used,
            flags=_flags(call),
            switched_on=tuple(m.switched_on),
            fed_by=_fed_by([*call.args, *call.kwargs.values()]),
            fed_with=_fed_with(call),
            **_spelling(call),
        )
    elif is_loss_module(model) and isinstance(result, Tensor):
        _as_loss(call, model, result)
    return result


def _is_wanted(grad: list[bool | None]) -> bool:
    """A block turns recording on in so many words."""
    return len(grad) > 1 and grad[-1] is True


def _fed_by(given: list[Value]) -> frozenset[int]:
    fed = (each.fed_by for each in given if isinstance(each, Tensor) and each.fed_by)
    return frozenset().union(*fed)


def _fed_with(call: LibraryCall) -> frozenset[int]:
    given = (*call.args, *call.kwargs.values())
    parts = (t for value in given for t in tensors_in(call.machine, value, call.node))
    return frozenset().union(*(each.forwards for each in parts))


def _flags(call: LibraryCall) -> frozenset[tuple[str, bool]]:
    given = {**{str(i): arg for i, arg in enumerate(call.args)}, **call.kwargs}
    values = ((name, constant(value)) for name, value in given.items())
    return frozenset((name, value) for name, value in values if isinstance(value, bool))


def _spelling(call: LibraryCall) -> dict[str, Any]:
    """The expressions before the brackets of a call, and where, and in them."""
    function = getattr(call.node, "func", None)
    if not isinstance(function, (ast.Name, ast.Attribute)):
        return {}
    through = isinstance(function, ast.Attribute) and function.attr in ("forward", "__call__")
    named = getattr(function, "value", function) if through else function
    given = tuple(written(each) for each in getattr(call.node, "args", ()))
    of_super = isinstance(named, ast.Call) and last_name(named.func) == "super"
    spelled = "" if of_super else written(named)
    return {"callee": call.machine.place(function), "spelled": spelled, "given": given}


def _as_loss(call: LibraryCall, model: Model, result: Tensor) -> None:
    """A module of the user's that computes a loss: what its criterion is nobody knows."""
    if not result.is_loss:
        result.is_loss, result.reduced, result.divided = True, None, False
        criterion = Criterion(kind=model.kind, reduction=None, name=model.name, made=model.made)
        call.emit(
            Loss,
            criterion=criterion,
            input=call.arg(0),
            target=call.arg(1),
            output=result,
        )


def _through(call: LibraryCall, model: Model) -> Value:
    m = call.machine
    if isinstance(model.cls, Class):
        forward = model.cls.lookup("forward")
        if isinstance(forward, Function):
            rest: list[Value] | None = [] if call.open else None
            given = [model, *call.args]
            if rest is None and not forward.decorators and not takes(forward, given, call.kwargs):
                return call.unknown(*call.args)  # with these arguments a different network is meant
            return start(m, forward, given, call.kwargs, call.node, rest)
    short = model.kind.rpartition(".")[2]
    if model.wraps is not None:
        inner = LibraryCall(
            m, call.node, "__call__", call.args, call.kwargs, model.wraps, call.open
        )
        return run_forward(inner, direct=False)
    if is_sequential(model) and call.args:
        value = call.args[0]
        for child in model.children.values():
            inner = LibraryCall(m, call.node, "__call__", [value], {}, child)
            value = run_forward(inner, direct=False)
        if model.complete and model.children:
            return value
    parents = [
        tensor
        for value in (*call.args, *call.kwargs.values())
        for tensor in tensors_in(m, value, call.node)
    ]
    return _layer_output(call, model, short, parents)


def _layer_output(call: LibraryCall, model: Model, short: str, parents: list[Tensor]) -> Tensor:
    m = call.machine
    passes = short in _PASS_THROUGH and model.kind.startswith("torch.nn.")
    made = derive(m, call.node, *parents, same=passes and bool(parents))
    made.is_loss, made.role, made.scaled_by = False, "", None
    made.gradient, made.constant_terms = None, frozenset()
    made.shape = _shape_of_output(model, parents[0].shape) if len(parents) == 1 else None
    if not model.kind.startswith("torch.nn."):
        head = _head_of(model)
        if head is not None:
            made.activation = _activation(call, head)
        return made
    before = made.activation.kind if made.activation else ""
    own = _activation(call, model)
    if own is not None:
        made.activation = own
    elif not passes or (before and not before.endswith(("linear", "softmax", "sigmoid"))):
        made.activation = None
    return made


_KEEPS_SHAPE = re.compile(
    r"torch\.nn\.(\w*ReLU6?|[SGC]?ELU|SiLU|Mish|Tanh|\w*Sigmoid|\w*Softmax|\w*Dropout\dd|Dropout"
    r"|\w+Norm\dd|LayerNorm|Identity|Softplus|Hardtanh|Hardswish)$"
)


def _shape_of_output(layer: Model, shape: tuple[Size, ...] | None) -> tuple[Size, ...] | None:
    """Of a linear layer, or of one that works on each element."""
    if layer.kind == "torch.nn.Linear" and shape:
        size = layer.arguments.get("out_features")
        return (*shape[:-1], size if type(size) is int else None)
    return shape if _KEEPS_SHAPE.match(layer.kind) else None


_ACTIVATIONS = {
    "Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid",
    "LogSigmoid": "logsigmoid",
} | dict.fromkeys(_LINEAR, "linear")  # fmt: skip


def _activation(call: LibraryCall, layer: Model) -> Activation | None:
    """The effects of a torch layer on its values that bear on losses."""
    kind = _ACTIVATIONS.get(layer.kind.rpartition(".")[2])
    if kind is None or not layer.kind.startswith("torch.nn."):
        return None
    # Of a layer within a `Sequential`, the call is that of the whole.
    inside = any(parent.kind == "torch.nn.Sequential" for parent in layer.parents)
    guards = frozenset(call.machine.guards) | layer.guards
    if kind == "linear":
        guards = frozenset()
    place = layer.made if inside else call.place
    source = layer if kind == "linear" else None
    return Activation(kind, layer.arguments.get("dim"), place, guards, source)


_NETWORKS = re.compile(
    r"torchvision\.models\.(?!segmentation|detection|inception)|timm\.create_model$"
)


def _head_of(model: Model) -> Model | None:
    """The last layer of a classifier of torchvision's or timm's, where the user put it there."""
    if not _NETWORKS.match(model.kind):
        return None
    heads = (model.children.get(name) for name in ("fc", "classifier", "head", "heads"))
    layer = next((head for head in heads if head is not None), None)
    while layer is not None and layer.kind == "torch.nn.Sequential" and layer.children:
        layer = list(layer.children.values())[-1] if layer.complete else None
    return layer


def _mark(call: LibraryCall, value: Value, model: Model, serial: int, depth: int = 3) -> Value:
    """The result of a module depends on its parameters."""
    m = call.machine
    m.spend(depth != 3, call.node)
    if isinstance(value, Unknown) and value.number:
        return value  # `.item()` and `.numpy()` leave the graph behind
    if isinstance(value, (Unknown, OpaqueObject)):
        behind = tensors_in(m, value, call.node)
        if depth < 3 and not behind:
            return value  # beside its output: seconds, a name, a count
        value = derive(m, call.node, *behind)
    if isinstance(value, Tensor):
        if value.dtype in WITHOUT_FRACTION:
            return value
        if m.recording and value.gradient is None:
            value.graph = True
            value.models |= {model}
            value.forwards |= {serial} if serial else frozenset()
        elif serial and not m.recording:
            value.fed_by |= {serial}
        return value
    if depth == 0:
        return value
    if isinstance(value, Sequence):
        value.values = [_mark(call, each, model, serial, depth - 1) for each in value.values]
    elif isinstance(value, DictValue):
        value.entries = {
            key: _mark(call, each, model, serial, depth - 1) for key, each in value.entries.items()
        }
    elif isinstance(value, Instance):
        value.attributes = {
            key: _mark(call, each, model, serial, depth - 1) if _is_tensor(each) else each
            for key, each in value.attributes.items()
        }
    return value


def _is_tensor(value: Value) -> bool:
    return isinstance(value, (Tensor, Unknown))


# ------------------------------------------------------------------------------- modes and more


@methods(Model, "parameters", "named_parameters", "buffers", "named_buffers")
def _parameters(call: LibraryCall) -> Value:
    if call.name.endswith("buffers"):
        return call.unknown()
    found = Parameters([call.receiver])
    if call.name == "named_parameters":
        name = Unknown(f"<name {call.machine.number(found)}>", loop_variant=True)
        leaf = Tensor(role="parameter", models=frozenset([call.receiver]), made=call.place)
        return Sequence("list", [Sequence("tuple", [name, leaf])], True)
    return found


@methods(Model, "modules", "children", "named_modules", "named_children")
def _members(call: LibraryCall) -> Value:
    model: Model = call.receiver
    inner = list(model.family()) if "modules" in call.name else list(model.children.values())
    values: list[Value] = list(inner)
    if call.name.startswith("named"):
        values = [Sequence("tuple", [call.unknown(), each]) for each in inner]
        if call.name == "named_modules" and inner[1:]:
            values.append(values.pop(0))  # who looks one up by a name hardly means the whole
    return Sequence("list", values[:8], not model.complete or len(values) > 8)


@calls("torch.nn.Module.zero_grad")
def _zero_grad_by_class(call: LibraryCall) -> Value:
    call.emit(ZeroGrad, target=call.arg(0))
    return NONE


@methods(Model, "zero_grad")
def _zero_grad(call: LibraryCall) -> Value:
    accumulating = any(each is call.receiver for each in call.machine.accumulating)
    call.emit(ZeroGrad, target=call.receiver, accumulating=accumulating)
    return NONE


@methods(Model, "to", "cuda", "cpu", "half", "float", "double", "bfloat16", "type")
def _move(call: LibraryCall) -> Value:
    model: Model = call.receiver
    dtypes = {"half", "float", "double", "bfloat16", "type"}
    how = "dtype" if call.name in dtypes else "device"
    to = call.name if call.name in dtypes else ""
    given = [getattr(arg, "name", "") for arg in (*call.args, *call.kwargs.values())]
    if call.name == "to" and any(
        (name.startswith("torch.") and "float" in name) or name.endswith(("half", "double"))
        for name in given
    ):
        how = "dtype" if len(given) == 1 else "both"
        to = next(name for name in given if name.startswith("torch.")).rpartition(".")[2]
    device = "" if how == "dtype" else _device(call)
    call.emit(Moved, model=model, how=how, to=to, device=device)
    return model


def _device(call: LibraryCall) -> str:
    """`cpu`, `cuda`, or the key of what `.to(...)` is given first; empty for a memory format."""
    if call.name != "to":
        return call.name
    device = call.arg(0, "device")
    return call.machine.key(device) if device is not None else ""


@methods(Model, "requires_grad_")
def _requires_grad(call: LibraryCall) -> Value:
    flag = call.const(0, "requires_grad", True)
    model: Model = call.receiver
    later = thaws_later(call.machine.modules[-1].tree)
    call.emit(FlagsSet, model=model, requires_grad=flag, whole=True, thawed_later=later)
    return model


@methods(Model, "reset_parameters", "apply", "reset_running_stats")
def _initialise(call: LibraryCall) -> Value:
    """Layers draw their weights again, or a function does it for each."""
    call.emit(
        Used, what=f"torch.nn.Module.{call.name}", subject=call.receiver,
        result_used=call.result_used,
    )  # fmt: skip
    model: Model = call.receiver
    if call.name == "apply":
        apply_switches(call, model)
    return model if call.name == "apply" else NONE


@methods(Model, "share_memory", "tie_weights",
         "set_extra_state", "float_", "register_buffer", "register_full_backward_hook",
         "resize_token_embeddings",
         "config", "extra_repr", "get_submodule", "get_parameter",
         "print_trainable_parameters")  # fmt: skip
def _chained(call: LibraryCall) -> Value:
    if call.name == "register_buffer" and call.const(0):
        call.receiver.attributes[call.const(0)] = call.arg(1, "", NONE)
        return NONE
    return call.receiver if call.name == "share_memory" else NONE
