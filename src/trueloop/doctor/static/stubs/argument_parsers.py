"""Options that argparse refuses: such a program ends before it trains."""

from __future__ import annotations

from trueloop.doctor.static.interpreter.step_budget import ProgramFailsError
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, methods
from trueloop.doctor.static.interpreter.values import Constant, OpaqueObject, Value, constant

_NO_TYPES = frozenset({"int", "float", "str", "store_true", "store_false"})
"""Texts that are given as a `type`, and that no parser registers under such a name."""
_OF_VALUES = ("type", "nargs", "choices")
"""Arguments of options that take a value: a flag may not have them."""
_FLAGS = frozenset({"-h", "--help"})
_OPEN = frozenset({"parents", "conflict_handler", "add_help"})
"""With these a parser has other flags at first, or takes one twice."""


@methods(OpaqueObject, "add_argument")
def _add_argument(call: LibraryCall) -> Value:
    machine, parser = call.machine, call.receiver
    machine.reach.unresolved.add(call.name)
    if parser.kind == "argparse.ArgumentParser" and machine.must_succeed:
        why = _refused(call) or _repeated(call, parser)
        if why:
            raise ProgramFailsError(call.place, f"argparse refuses {why}")
    return call.unknown(parser, *call.args)


def _refused(call: LibraryCall) -> str:
    kind, action = constant(call.kwargs.get("type")), constant(call.kwargs.get("action"))
    if isinstance(kind, str) and kind in _NO_TYPES:
        return f'`type="{kind}"`'
    if action in ("store_true", "store_false"):
        given = next((each for each in _OF_VALUES if each in call.kwargs), "")
        return f'`{given}` beside `action="{action}"`' if given else ""
    return ""


def _repeated(call: LibraryCall, parser: OpaqueObject) -> str:
    """An option that the parser has already. In a loop its name may differ from turn to turn."""
    if call.machine.turns or not _OPEN.isdisjoint(parser.arguments):
        return ""
    known = parser.attributes.get("[flags]")
    taken = known.value if isinstance(known, Constant) else _FLAGS
    flags = [flag for each in call.args if isinstance(flag := constant(each), str)]
    flags = [each for each in flags if each.startswith("-")]
    parser.attributes["[flags]"] = Constant(taken | frozenset(flags))
    return next((f"`{each}` a second time" for each in flags if each in taken), "")
