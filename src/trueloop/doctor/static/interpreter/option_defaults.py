"""Options of the command line in a run without them: their defaults."""

from __future__ import annotations

import ast
import operator
import re
from collections import Counter

from trueloop.doctor.model.things import Size
from trueloop.doctor.static.interpreter.branches import BranchPolicy, limit_in
from trueloop.doctor.static.interpreter.survey import FileSummary, last_name
from trueloop.doctor.static.interpreter.syntax import nodes_of, once
from trueloop.doctor.static.interpreter.values import Constant, Unknown, Value

ORDER = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


def decided_by_default(
    policy: BranchPolicy, surveys: list[FileSummary], value: Value, key: str
) -> bool | None:
    """Whether the condition `key`, which a value is or negates, holds by an option's default;
    None where that is not known, and in a run with options. `surveys`: of the files of the run."""
    if policy.optional:
        return None
    equals = getattr(value, "equals", None)
    if policy.given:
        return _with_all_defaults(surveys, equals, key)
    if equals is None:
        return None
    name = equals[0].rpartition(".")[2]
    defaults = (each.options.get(name) for each in surveys)
    default = next((each for each in defaults if isinstance(each, (str, int, float))), None)
    if not isinstance(default, str) and not _is_of_a_count(value):
        return None  # `args.local_rank == -1`: the way without the default is to be read, too
    return None if default is None else bool(default == equals[1])


def whole_number(surveys: list[FileSummary], size: Size) -> int | None:
    """A quantity in a run without options; None where it is not known then either."""
    if not isinstance(size, str):
        return size
    found = _default(surveys, size.removeprefix("int(").rstrip(")"))
    if isinstance(found, float) and found.is_integer():
        return int(found)  # `--epochs` with `type=float, default=1.0`
    return found if type(found) is int else None


def _is_of_a_count(value: Value) -> bool:
    """`collected == args.accumulate`: something that a loop counts is compared."""
    parts = getattr(value, "of", ())
    return any(isinstance(each, Constant) and each.loop_variant for each in parts)


def _with_all_defaults(
    surveys: list[FileSummary], equals: tuple[str, object] | None, key: str
) -> bool | None:
    """The same where each option has its default, and one without a default is given."""
    if equals is not None:
        default = _default(surveys, equals[0])
        return None if default is None else bool(default == equals[1])
    for sign, holds in ORDER.items():
        name, found, _ = key.rpartition(f" {sign} ")
        limit = limit_in(key, f"{name} {sign} ") if found else None
        default = _default(surveys, name)
        if limit is not None and isinstance(default, (int, float)):
            return bool(holds(default, limit))
    name = key.rpartition(".")[2]
    if "." in key and any(name in each.given for each in surveys):
        return True
    default = _default(surveys, key)
    return None if default is None else bool(default)


def _default(surveys: list[FileSummary], key: str) -> object:
    """The default of the option that a value is, by its key (`args.gamma`)."""
    name = key.rpartition(".")[2]
    if "." not in key or not name.isidentifier():
        return None
    return next((each.options[name] for each in surveys if name in each.options), None)


_OF_A_PARSER = re.compile(r"<[\d.]+>\.(\w+)")
"""The key of an attribute of what a call has given."""
_CHANGES = frozenset({"setattr", "vars", "Namespace"})
"""Functions by which a program may give an option a different value."""


def is_always_on(tree: ast.Module, value: Value) -> bool:
    """A value is an option of the command line that nothing switches off: `"--evaluate",
    action="store_true", default=True`. `tree`: of the file that has the test."""
    found = _OF_A_PARSER.fullmatch(value.key) if isinstance(value, Unknown) else None
    return found is not None and found[1] in _always_on(tree)


@once
def _always_on(tree: ast.Module) -> frozenset[str]:
    calls, attributes = nodes_of(tree, ast.Call), nodes_of(tree, ast.Attribute)
    into = (each.value for each in attributes if each.attr == "update")
    if not _CHANGES.isdisjoint(last_name(each.func) for each in calls) or any(
        last_name(each) == "__dict__" for each in into
    ):
        return frozenset()
    given = Counter(each.attr for each in attributes if not isinstance(each.ctx, ast.Load))
    on: set[str] = set()
    for call in calls:
        named = {each.arg: getattr(each.value, "value", None) for each in call.keywords}
        if last_name(call.func) == "set_defaults":
            given.update(str(name) for name in named)
        if last_name(call.func) != "add_argument":
            continue
        words = [str(getattr(each, "value", "")) for each in call.args]
        flag = next((each for each in words if each.startswith("--")), "")
        name = str(named.get("dest", flag.lstrip("-").replace("-", "_")))
        given[name] += 1
        if named.get("action") == "store_true" and named.get("default") is True:
            on.add(name)
    if given["None"]:
        return frozenset()  # `set_defaults(**settings)`
    return frozenset(name for name in on if given[name] == 1)
