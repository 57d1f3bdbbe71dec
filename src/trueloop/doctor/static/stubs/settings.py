"""Objects of settings whose attributes are set under names that are read from elsewhere: what their
class sets is a default then, and no longer known."""

from __future__ import annotations

from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, methods
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    Constant,
    DictValue,
    Instance,
    LibraryMethod,
    OpaqueObject,
    Unknown,
    Value,
)


def overridden(owner: Instance) -> None:
    """Any of its constants may be a different one now."""
    defaults: dict[str, Value] = {}
    for kind in reversed(owner.cls.lineage()):
        if isinstance(kind, Class):
            defaults.update(kind.namespace)
    for name, value in {**defaults, **owner.attributes}.items():
        if isinstance(value, Constant) and not name.startswith("__"):
            owner.attributes[name] = Unknown(f"{owner.key}.{name}")


@methods(LibraryMethod, "update")
def _update(call: LibraryCall) -> Value:
    """`self.__dict__.update(loaded)`."""
    owner = call.receiver.receiver
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


DEPTH = 4
"""Levels of tables within tables."""


def _opened(owner: OpaqueObject, key: str, depth: int) -> None:
    for name, value in owner.attributes.items():
        inner = f"{key}.{name}"
        if isinstance(value, OpaqueObject) and depth:
            _opened(value, inner, depth - 1)
        elif isinstance(value, Constant) and any(value.value is each for each in ("", None, False)):
            owner.attributes[name] = Unknown(inner)
