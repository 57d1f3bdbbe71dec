"""A function with some of its arguments, references to objects, and modules by their name."""

from __future__ import annotations

from trueloop.doctor.static.interpreter.imports import module_value
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls
from trueloop.doctor.static.interpreter.values import LibraryName, OpaqueObject, Value, constant


@calls("functools.partial")
def _partial(call: LibraryCall) -> Value:
    first = [] if call.open else call.args  # of `partial(f, *args)` not all are known
    return OpaqueObject("functools.partial", dict(call.kwargs), call=first)


@calls("weakref.proxy", "weakref.ref")
def _weak(call: LibraryCall) -> Value:
    """The object itself, or what gives it when it is called."""
    target = call.arg(0)
    if target is None or call.name == "weakref.proxy":
        return target or call.unknown()
    return OpaqueObject("weakref.ref", {}, call=[LibraryName("trueloop.identity"), target])


@calls("importlib.import_module")
def _import(call: LibraryCall) -> Value:
    """A module whose whole name is known."""
    name = constant(call.arg(0, "name"))
    if not isinstance(name, str) or name.startswith("."):
        return call.unknown(*call.args)
    return module_value(call.machine, name, call.machine.modules[-1])
