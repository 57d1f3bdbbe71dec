"""Objects of settings whose attributes are set under names that are read from elsewhere: what their
class sets is a default then, and no longer known."""

from __future__ import annotations

from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    Constant,
    DictValue,
    Instance,
    LibraryMethod,
    LibraryName,
    OpaqueObject,
    Unknown,
    Value,
)

DEPTH = 4
"""Levels of tables within tables."""


def overridden(owner: Instance, depth: int = DEPTH) -> None:
    """Any of its constants, and of the settings that it holds, may be a different one now."""
    defaults: dict[str, Value] = {}
    for kind in reversed(owner.cls.lineage()):
        if isinstance(kind, Class):
            defaults.update(kind.namespace)
    for name, value in {**defaults, **owner.attributes}.items():
        if name.startswith("__"):
            continue
        if isinstance(value, (Constant, LibraryName)):  # a number, `torch.float16`
            owner.attributes[name] = Unknown(f"{owner.key}.{name}")
        elif isinstance(value, Instance) and value is not owner and depth:
            overridden(value, depth - 1)


@calls("dataclasses.field")
def _field(call: LibraryCall) -> Value:
    """A field of a dataclass, with how its default is made: see `calls.instantiate`."""
    return OpaqueObject(call.name, dict(call.kwargs), key=f"field@{call.place.line}")


@calls("types.SimpleNamespace", "argparse.Namespace")
def _namespace(call: LibraryCall) -> Value:
    """Settings by their names, all of them written out."""
    made = OpaqueObject(call.name, key=f"{call.name.rpartition('.')[2]}@{call.place.line}")
    if not call.open:
        made.attributes.update(call.kwargs)
    return made


@calls("builtins.vars")
def _vars(call: LibraryCall) -> Value:
    """`vars(args).update(loaded)`."""
    owner = call.arg(0)
    known = isinstance(owner, OpaqueObject) and owner.attributes
    return LibraryMethod(owner, "__dict__") if known else call.unknown(*call.args)


@methods(OpaqueObject, "parse_args", "parse_known_args")
def _parsed(call: LibraryCall) -> Value:
    """`parser.parse_args(namespace=settings)`: each may be given."""
    for given in (*call.args, *call.kwargs.values()):
        if isinstance(given, OpaqueObject):
            changeable(given)
    call.machine.reach.unresolved.add(call.name)
    return call.unknown(call.receiver, *call.args)


def changeable(owner: OpaqueObject) -> None:
    """Any of its numbers and texts may be a different one now."""
    for name, value in owner.attributes.items():
        if isinstance(value, Constant):
            owner.attributes[name] = Unknown(f"{owner.key}.{name}")


@methods(LibraryMethod, "update")
def _update(call: LibraryCall) -> Value:
    """`self.__dict__.update(loaded)`."""
    owner = call.receiver.receiver
    if call.receiver.name == "__dict__" and isinstance(owner, OpaqueObject):
        changeable(owner)
    if call.receiver.name != "__dict__" or not isinstance(owner, Instance):
        return call.unknown(call.receiver, *call.args)
    for given in [each for each in call.args if isinstance(each, DictValue)]:
        known = {name: value for name, value in given.entries.items() if isinstance(name, str)}
        owner.attributes.update(known)
    if call.open or not all(_is_known(each) for each in call.args):
        overridden(owner)
    owner.attributes.update(call.kwargs)
    return NONE


def _is_known(value: Value) -> bool:
    return isinstance(value, DictValue) and not value.open and not value.rest


@methods(OpaqueObject, "merge_from_file", "merge_from_list", "merge_from_other_cfg")
def _merged(call: LibraryCall) -> Value:
    """`cfg.merge_from_file(args.config)`: what the defaults leave out or off may be given now."""
    _opened(call.receiver, call.machine.key(call.receiver), DEPTH)
    return NONE


def _opened(owner: OpaqueObject, key: str, depth: int) -> None:
    for name, value in owner.attributes.items():
        inner = f"{key}.{name}"
        if isinstance(value, OpaqueObject) and depth:
            _opened(value, inner, depth - 1)
        elif isinstance(value, Constant) and any(value.value is each for each in ("", None, False)):
            owner.attributes[name] = Unknown(inner)
