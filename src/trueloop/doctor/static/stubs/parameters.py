"""Parameters: made, hidden, replaced, handed in by the call, averaged; and functional dropout."""

from __future__ import annotations

from trueloop.doctor.model.events import (
    FlagsSet,
    FunctionalDropout,
    HookSet,
    Made,
    Replaced,
    StateDictLoaded,
    Used,
)
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import contents
from trueloop.doctor.model.things import Model, Tensor
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Constant,
    DictValue,
    Parameters,
    Sequence,
    Value,
    constant,
)
from trueloop.doctor.static.stubs.checkpoints import duplicate
from trueloop.doctor.static.stubs.containers import add_child
from trueloop.doctor.static.stubs.dropout_modes import mode_is_asked, module_around
from trueloop.doctor.static.stubs.modules import run_forward
from trueloop.doctor.static.stubs.options import dropout_rate
from trueloop.doctor.static.stubs.tensors import derive, tensors_in


@calls("torch.nn.Parameter")
def _parameter(call: LibraryCall) -> Value:
    """A parameter: a leaf, and registered when it is set on a module."""
    data = call.arg(0, "data")
    needs = call.const(1, "requires_grad", True, True)
    made = Tensor(role="parameter", made=call.place, known=True, graph=False)
    made.is_parameter, made.requires_grad = True, needs is not False
    if isinstance(data, Tensor):
        made.shape, made.dtype, made.values = data.shape, data.dtype, data.values
    return made


@calls("torch.nn.ParameterList", "torch.nn.ParameterDict")
def _list_of_parameters(call: LibraryCall) -> Value:
    """A container that registers what it is given: other modules' parameters as well."""
    model = Model(kind=call.name, made=call.place, known=True)
    given = call.arg(0, "", NONE)
    parts = contents(given) if isinstance(given, (Sequence, DictValue)) else [given]
    layers = [
        each for part in parts if isinstance(part, (Parameters, Tensor)) for each in part.models
    ]
    own = all(part is NONE or isinstance(part, (Parameters, Tensor)) for part in parts)
    whole = own and not getattr(given, "open", False)
    model.parameters_of = layers if whole else None
    call.emit(Made, thing=model)
    return model


@calls("torch.nn.Embedding.from_pretrained", "torch.nn.EmbeddingBag.from_pretrained")
def _embedding_of_vectors(call: LibraryCall) -> Value:
    """An embedding with given vectors, frozen unless `freeze=False`."""
    kind = call.name.removesuffix(".from_pretrained")
    model = Model(kind=kind, made=call.place, known=True)
    model.arguments = {name: constant(value) for name, value in call.kwargs.items()}
    call.emit(Made, thing=model)
    call.emit(StateDictLoaded, thing=model, state=call.arg(0, "embeddings"))
    freeze = call.const(1, "freeze", True)
    if freeze is not False:
        needs = False if freeze is True else None
        call.emit(FlagsSet, model=model, requires_grad=needs, whole=True)
    return model


@calls("torch.nn.Buffer", "torch.nn.UninitializedBuffer")
def _buffer(call: LibraryCall) -> Value:
    """A tensor that belongs to a module, and that no optimizer has."""
    data = call.arg(0, "data")
    parents = [data] if isinstance(data, Tensor) else []
    return derive(call.machine, call.node, *parents)


# ------------------------------------------------------------------------------- dropout


@calls(*(f"torch.nn.functional.{name}" for name in (
    "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout",
)))  # fmt: skip
def _dropout(call: LibraryCall) -> Value:
    """`F.dropout(x, p=0.5, training=True)`: on, unless an argument turns it off."""
    m = call.machine
    subject = call.arg(0, "input")
    module = module_around(call)
    rate = dropout_rate(m, call.arg(1, "p", Constant(0.5)))
    if rate == 0:
        _asked_for_nothing(m, module)
    call.emit(
        FunctionalDropout,
        function=call.name.rpartition(".")[2],
        p=None if call.open and len(call.args) < 2 else rate,
        training=call.given(2, "training"),
        module=module,
        asks_mode=mode_is_asked(call),
        last_argument=_last_argument(call),
        receiver=_receiver_name(call),
    )
    return derive(
        m, call.node, *tensors_in(m, subject, call.node), same=isinstance(subject, Tensor)
    )


def _asked_for_nothing(m: Interpreter, module: Model | None) -> None:
    """The mode was asked for a dropout that drops nothing."""
    if m.mode_asked is not None and m.mode_asked[0] is module:
        module.asks_mode = m.mode_asked[1]


_ATTENTION = {
    "torch.nn.functional.scaled_dot_product_attention": (4, "dropout_p"),
    "xformers.ops.memory_efficient_attention": (4, "p"),
    "flash_attn.flash_attn_func": (3, "dropout_p"),
    "flash_attn.flash_attn_qkvpacked_func": (1, "dropout_p"),
    "flash_attn.flash_attn_kvpacked_func": (2, "dropout_p"),
    "flash_attn.flash_attn_varlen_func": (7, "dropout_p"),
    "flash_attn.flash_attn_varlen_qkvpacked_func": (3, "dropout_p"),
    "flash_attn.flash_attn_varlen_kvpacked_func": (6, "dropout_p"),
}
"""Functions that drop attention weights: which argument is the rate."""
_ATTENTION |= {
    name.replace("flash_attn.", "flash_attn.flash_attn_interface.", 1): given
    for name, given in _ATTENTION.items()
    if name.startswith("flash_attn.")
}


@calls(*_ATTENTION)
def _attention(call: LibraryCall) -> Value:
    """Its rate knows nothing of the mode."""
    m = call.machine
    module = module_around(call)
    rate = dropout_rate(m, call.arg(*_ATTENTION[call.name], Constant(0)))
    if rate == 0 and module is not None and module.training:
        _asked_for_nothing(m, module)  # `self.rate if self.training else 0`
    call.emit(
        FunctionalDropout,
        function=call.name.rpartition(".")[2],
        p=rate,
        training=None if call.open else False,
        module=module,
        asks_mode=mode_is_asked(call),
    )
    given = [each for arg in call.args[:3] for each in tensors_in(m, arg, call.node)]
    return derive(m, call.node, *given)


def _last_argument(call: LibraryCall) -> Location | None:
    keywords = [each.value for each in getattr(call.node, "keywords", [])]
    given = [*getattr(call.node, "args", []), *keywords]
    if not given:
        return None
    return call.machine.place(max(given, key=lambda each: (each.lineno, each.col_offset)))


def _receiver_name(call: LibraryCall) -> str:
    """The name by which the current function refers to the module whose method it is; empty if it
    belongs to none."""
    m = call.machine
    definition = m.calls[-1][1] if m.calls else None
    args = getattr(definition, "args", None)
    if not isinstance(m.receivers[-1] if m.receivers else None, Model) or args is None:
        return ""
    return args.args[0].arg if args.args else ""


# ------------------------------------------------------------------------------- other parameters


@calls("torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
def _functional_call(call: LibraryCall) -> Value:
    """A module with the parameters that are handed in: its own, fast weights, a mean of others."""
    model = call.arg(0, "module")
    given = call.arg(2, "args")
    args: list[Value] = []
    args += given.values if isinstance(given, Sequence) else [given] if given is not None else []
    named = call.arg(3, "kwargs")
    kwargs = dict(named.entries) if isinstance(named, DictValue) else {}
    if not isinstance(model, Model):
        return call.unknown(*call.args)
    inner = LibraryCall(call.machine, call.node, "__call__", args, kwargs, model)
    return run_forward(inner, direct=False, functional=True)


@calls("torch.nn.utils.weight_norm", "torch.nn.utils.parametrizations.weight_norm")
def _weight_norm(call: LibraryCall) -> Value:
    """The weight makes room for two parameters, its length and its direction."""
    module = call.arg(0, "module")
    if isinstance(module, Model):
        name = call.const(1, "name", "weight") or "weight"
        call.emit(Replaced, model=module, attribute=name, old=None, new=None, how="parametrized")
        if call.name == "torch.nn.utils.weight_norm":
            call.emit(HookSet, model=module, by="weight_norm")
    return module if module is not None else call.unknown()


def parametrized(name: str) -> str:
    """How the names begin of what `register_parametrization` puts in the place of a parameter."""
    return f"parametrizations.{name}."


@calls("torch.nn.utils.parametrize.register_parametrization")
def _register_parametrization(call: LibraryCall) -> Value:
    """The parameter keeps its identity, under a different name; beside it there is now a module
    that computes the weight from it, with its own parameters (a LoRA)."""
    module, computes = call.arg(0, "module"), call.arg(2, "parametrization")
    if isinstance(module, Model):
        own = parametrized(str(call.const(1, "tensor_name", "weight")))
        number = sum(each.startswith(own) for each in module.children)
        add_child(module, f"{own}{number}", computes)
    return module if module is not None else call.unknown()


@methods(Model, "to_empty")
def _to_empty(call: LibraryCall) -> Value:
    """Parameters on the meta device are replaced; others keep their identity."""
    model: Model = call.receiver
    if any(member.arguments.get("device") == "meta" for member in model.family()):
        call.emit(Replaced, model=model, attribute="", old=None, new=None, how="to_empty")
    return model


# ------------------------------------------------------------------------------- averages


@calls("torch.optim.swa_utils.AveragedModel")
def _averaged(call: LibraryCall) -> Value:
    """A copy of a model whose parameters follow it."""
    model = call.arg(0, "model")
    if not isinstance(model, Model):
        return call.unknown(*call.args)
    copied = duplicate(call, model, {}, True)
    assert isinstance(copied, Model)
    made = Model(kind=call.name, made=call.place, known=True, wraps=copied, wrapper="ema")
    made.training, made.complete = copied.training, copied.complete
    call.emit(Made, thing=made)
    return made


@methods(Model, "update_parameters")
def _update_parameters(call: LibraryCall) -> Value:
    return NONE


@calls("torch.optim.swa_utils.update_bn")
def _update_bn(call: LibraryCall) -> Value:
    """Takes the statistics of batch norms again, in train mode; restores the mode after."""
    model = call.arg(1, "model")
    call.emit(Used, what=call.name, subject=model, result_used=False)
    return Constant(None)


@calls("torch.optim.swa_utils.get_ema_multi_avg_fn", "torch.optim.swa_utils.get_swa_multi_avg_fn",
       "torch.optim.swa_utils.get_ema_avg_fn", "torch.optim.swa_utils.get_swa_avg_fn")  # fmt: skip
def _averaging(call: LibraryCall) -> Value:
    return call.unknown()
