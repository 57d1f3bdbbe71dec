"""Libraries that call a program's own function: with options of the command line, in a profiler,
in a thread, or with arguments that were given before."""

from __future__ import annotations

from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.values import (
    Function,
    Method,
    OpaqueObject,
    Sequence,
    Value,
)


@calls("absl.app.run", "fire.Fire", "tyro.cli", "typer.run", "jsonargparse.CLI",
       "jsonargparse.auto_cli", "defopt.run", "argh.dispatch_command", "plac.call")  # fmt: skip
def _with_options(call: LibraryCall) -> Value:
    """Its arguments are options: each may be given."""
    function = next(iter([*call.args, *call.kwargs.values()]), None)
    if not isinstance(function, (Function, Method)):
        return call.unknown(*call.args)
    call.machine.beginning = True
    return call.machine.call_value(function, [], node=call.node)


@calls("detectron2.engine.launch")
def _launch(call: LibraryCall) -> Value:
    return _called(call, call.arg(0, "main_func"), call.arg(5, "args"))


@calls("threading.Thread")
def _thread(call: LibraryCall) -> Value:
    """As if it ran where it is made."""
    _called(call, call.arg(1, "target"), call.arg(3, "args"))
    return call.unknown()


@calls("cProfile.Profile", "profile.Profile")
def _profiler(call: LibraryCall) -> Value:
    return OpaqueObject("cProfile.Profile")


@methods(OpaqueObject, "runcall")
def _profiled(call: LibraryCall) -> Value:
    if not call.args:
        return call.unknown()
    return call.machine.call_value(call.args[0], call.args[1:], call.kwargs, call.node)


def _called(call: LibraryCall, function: Value | None, given: Value | None) -> Value:
    if not isinstance(function, (Function, Method)):
        return call.unknown(*call.args)
    args = list(given.values) if isinstance(given, Sequence) else []
    return call.machine.call_value(function, args, node=call.node)
