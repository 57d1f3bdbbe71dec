"""The networks of transformers and diffusers, and the user's classes that extend them, which the
library's `from_pretrained` makes."""

from __future__ import annotations

import re

from trueloop.doctor.model.events import Made
from trueloop.doctor.model.things import Model
from trueloop.doctor.static.interpreter.calls import instantiate
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    DictValue,
    Function,
    LibraryName,
    OpaqueObject,
    Unknown,
    Value,
    constant,
)

_LIBRARIES = ("transformers.", "diffusers.")
_OF_THE_LOADER = frozenset(
    "config cache_dir ignore_mismatched_sizes force_download local_files_only token revision"
    " use_safetensors weights_only torch_dtype dtype device_map low_cpu_mem_usage from_tf subfolder"
    " trust_remote_code attn_implementation quantization_config state_dict use_auth_token"
    " resume_download proxies output_loading_info variant max_memory".split()
)
"""Arguments that the constructor does not get."""


@calls("transformers.*", "diffusers.*")
def _from_library(call: LibraryCall) -> Value:
    """A network, or an object that a network, a tokenizer or a trainer is made from."""
    head, _, maker = call.name.rpartition(".")
    kind = head if maker.startswith("from_") else call.name
    short = kind.rpartition(".")[2]
    if "Model" in short or "For" in short[3:]:
        # `from_pretrained` hands out its models in eval mode.
        return _network(call, kind, training=maker != "from_pretrained")
    named = {str(i): arg for i, arg in enumerate(call.args)} | call.kwargs
    if short[:1].isupper():
        call.expose(*named.values())
        return OpaqueObject(kind, named)
    return call.unknown(*call.args, *call.kwargs.values())


def _network(call: LibraryCall, kind: str, *, training: bool) -> Model:
    """A network whose inside is not known."""
    model = Model(kind=kind, made=call.place, known=True, complete=False, training=training)
    if _turns_dropout_off(call):
        model.arguments["p"] = 0.0
    call.emit(Made, thing=model)
    return model


def _turns_dropout_off(call: LibraryCall) -> bool:
    """Its dropout rates are set to 0, in the call or in the configuration: those of its layers, and
    those of the attention, where these are separate."""
    settings = dict(call.kwargs)
    for config in (*call.args, call.kwargs.get("config")):
        if isinstance(config, OpaqueObject):
            settings |= config.arguments | config.attributes
    rates = {name: constant(value) for name, value in settings.items() if "drop" in name}
    if any(rate != 0 for rate in rates.values()):
        return False
    return any(map(_OF_LAYERS.search, rates)) and any(map(_OF_ATTENTION.search, rates))


_OF_LAYERS = re.compile(r"^dropout(_rate)?$|hidden|resid")
_OF_ATTENTION = re.compile(r"^dropout(_rate)?$|att")
"""XLNet's `dropout` and T5's `dropout_rate` are both."""


@methods(OpaqueObject, "update")
def _configured(call: LibraryCall) -> Value:
    """`config.update({"hidden_dropout_prob": 0.0})`."""
    given = call.arg(0)
    if not call.receiver.kind.startswith(_LIBRARIES) or not isinstance(given, DictValue):
        return _unknown(call)
    call.receiver.attributes.update(
        {name: value for name, value in given.entries.items() if isinstance(name, str)}
    )
    return NONE


def _comes_pretrained(cls: Value) -> bool:
    """Its `from_pretrained` is the one of the library's modules."""
    bases = [cls.name] if isinstance(cls, LibraryName) else []
    if isinstance(cls, Class) and isinstance(cls.lookup("__init__"), Function):
        bases = cls.dotted_bases()
    shorts = (base.rpartition(".")[2] for base in bases if base.startswith(_LIBRARIES))
    return any("Model" in short or "For" in short[3:] for short in shorts)


@methods(Class, "from_pretrained")
def _of_own_class(call: LibraryCall) -> Value:
    """An object as `__init__` makes it from a configuration that is not known, with weights that
    are; the library hands it out in eval mode."""
    cls: Class = call.receiver
    if not _comes_pretrained(cls):
        return _unknown(call)
    given = {name: value for name, value in call.kwargs.items() if name not in _OF_THE_LOADER}
    config = call.kwargs.get("config", call.unknown())
    made = instantiate(call.machine, cls, [config, *call.args[1:]], given, call.node)
    for each in made.family() if isinstance(made, Model) else ():
        each.training = False
    return made


@methods(Unknown, "from_pretrained")
def _of_one_of_several(call: LibraryCall) -> Value:
    """`MODELS[name].from_pretrained(path)`: a module of whose inside nothing is known."""
    several = call.receiver.of
    if len(several) == 1 and isinstance(several[0], DictValue) and not several[0].open:
        several = (*several[0].entries.values(),)
    if not several or not all(map(_comes_pretrained, several)):
        return _unknown(call)
    return _network(call, f"{_LIBRARIES[0]}PreTrainedModel", training=False)


def _unknown(call: LibraryCall) -> Value:
    given = [call.receiver, *call.args, *call.kwargs.values()]
    call.expose(*given)
    return call.unknown(*given)
