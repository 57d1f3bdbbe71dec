"""The user's classes that extend the modules of transformers and diffusers: their library's
`from_pretrained` makes the objects."""

from __future__ import annotations

from trueloop.doctor.model.events import Made
from trueloop.doctor.model.things import Model
from trueloop.doctor.static.interpreter.calls import instantiate
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, methods
from trueloop.doctor.static.interpreter.values import (
    Class,
    DictValue,
    Function,
    LibraryName,
    Unknown,
    Value,
)

_LIBRARIES = ("transformers.", "diffusers.")
_OF_THE_LOADER = frozenset(
    "config cache_dir ignore_mismatched_sizes force_download local_files_only token revision"
    " use_safetensors weights_only torch_dtype dtype device_map low_cpu_mem_usage from_tf subfolder"
    " trust_remote_code attn_implementation quantization_config state_dict use_auth_token"
    " resume_download proxies output_loading_info variant max_memory".split()
)
"""Arguments that the constructor does not get."""


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
    kind = f"{_LIBRARIES[0]}PreTrainedModel"
    model = Model(kind=kind, made=call.place, known=True, complete=False, training=False)
    call.emit(Made, thing=model)
    return model


def _unknown(call: LibraryCall) -> Value:
    given = [call.receiver, *call.args, *call.kwargs.values()]
    call.expose(*given)
    return call.unknown(*given)
