"""Open conditions: how one run decides them, and where they were met."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.survey import BACKWARD, FileSummary, last_name
from trueloop.doctor.static.interpreter.syntax import once, written
from trueloop.doctor.static.interpreter.values import (
    Function,
    Instance,
    LibraryName,
    Method,
    Module,
    Scope,
    Sequence,
    Value,
)


@dataclass(slots=True)
class BranchPolicy:
    """How one run decides what the source leaves open."""

    optional: bool = True
    """Take the branches that an option switches on."""
    forced: dict[str, bool] = field(default_factory=dict)
    """Decisions made in advance, by the condition's key."""
    given: bool = False
    """Options without a default (`--data`) are given, the others have their default."""
    asked: set[str] = field(default_factory=set)
    """The conditions that the run has asked about, by their key."""
    parts: set[str] = field(default_factory=set)
    """Keys of values of which it has asked whether a condition on them is decided in advance."""

    def forces(self, key: str) -> bool:
        """A condition is decided in advance."""
        self.asked.add(key)
        return key in self.forced

    def forces_part(self, key: str) -> bool:
        """A condition on the value of this key is decided in advance."""
        self.parts.add(key)
        return any(key in each for each in self.forced)

    def may_change(self, key: str, fact: bool) -> bool:
        """The run could have been a different one with this decision made in advance."""
        is_equal = fact and " == " in key  # decides other comparisons of the same value as well
        return is_equal or key in self.asked or any(part in key for part in self.parts)


@dataclass(slots=True)
class OpenBranch:
    """An open condition as it was met."""

    key: str
    negated: bool
    branches: tuple[list[ast.stmt], list[ast.stmt]]
    module: Module
    """The file that contains it."""


def limit_in(key: str, beginning: str) -> float | None:
    """The number that a comparison ends with, if it begins so."""
    if not key.startswith(beginning):
        return None
    try:
        return float(key[len(beginning) :])
    except ValueError:
        return None


def text_in(key: str, beginning: str) -> str | None:
    """The text that a comparison ends with, if it begins so."""
    try:
        found = ast.literal_eval(key[len(beginning) :]) if key.startswith(beginning) else None
    except (ValueError, SyntaxError):
        return None
    return found if isinstance(found, str) else None


def backwards_left_out(
    node: ast.If, outcome: bool, guards: list[str], varying: set[str], scope: Scope
) -> frozenset[int]:
    """The backwards of the branch that a run does not take, by the identity of their nodes: they
    are not of this run. Where the condition is open, both branches must be ways to train
    (`if args.fp16: ... else: ...`), and it must not be in `varying`."""
    branches = _training_calls(node)
    taken, left = branches if outcome else branches[::-1]
    if guards and not (taken.updates or left.scales):
        return frozenset()
    if any(guard.removeprefix("not ") in varying for guard in guards):
        return frozenset()
    called = [_backwards_of(scope, name) for name in left.names]
    return left.backwards.union(*called) if called else left.backwards


def returns_without_option(node: ast.If, surveys: Iterable[FileSummary]) -> bool:
    """A branch returns a value where an option is left off that is off by default: `if not
    args.backend: return LOCAL`. That is the way of a run without options, and no end of it."""
    last, test = node.body[-1], node.test
    if not isinstance(last, ast.Return) or getattr(last.value, "value", last.value) is None:
        return False
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        option = test.operand
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is):
        option = test.left if getattr(test.comparators[0], "value", test) is None else test
    else:
        return False
    if not isinstance(option, ast.Attribute):
        return False
    return any(not each.options.get(option.attr, True) for each in surveys)


@once
def last_of_kinds(function: ast.AST) -> ast.If | None:
    """The last test of a function that ends by choosing among kinds, each with its own value: `if
    kind == "sum": return a`, `elif kind == "mean": return b`, and nothing else. One of them is it:
    without any, the function has no value."""
    body = getattr(function, "body", None)
    chain: list[ast.If] = []
    for each in body if isinstance(body, list) else []:
        chain = chain if isinstance(each, ast.If) else []
        while isinstance(each, ast.If):
            chain.append(each)
            each = each.orelse[0] if len(each.orelse) == 1 else None
    asked = {_asked(each.test) for each in chain if isinstance(each.test, ast.Compare)}
    if len(chain) < 2 or chain[-1].orelse or not all(map(_gives_kind, chain)) or len(asked) > 1:
        return None
    return chain[-1]


@once
def searches(function: ast.AST) -> frozenset[int]:
    """Tests, by the identity of their node, with which a function finds one of several: `for each
    in BACKENDS: if each.name == name: return each`, and then `raise`. One of them is it."""
    found: set[int] = set()
    for body in _bodies(function):
        for each, after in itertools.zip_longest(body, body[1:]):
            if isinstance(each, ast.For) and isinstance((each.orelse or [after])[0], ast.Raise):
                found |= {id(test) for test in each.body if _ends_search(test)}
    return frozenset(found)


def _bodies(function: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statements of a function, and of the branches at its top."""
    body = getattr(function, "body", None)
    if isinstance(body, list):
        yield body
        for each in body:
            if isinstance(each, ast.If):
                yield from (each.body, each.orelse)


def _ends_search(node: ast.stmt) -> bool:
    if not isinstance(node, ast.If) or node.orelse:
        return False
    last = node.body[-1]
    return isinstance(last, ast.Break) or (isinstance(last, ast.Return) and last.value is not None)


def is_chosen(sites: dict[int, OpenBranch], function: ast.AST) -> bool:
    """An open condition decides what a function returns."""
    return any(id(each) in sites for each in _tests_before_returns(function))


@once
def _tests_before_returns(function: ast.AST) -> tuple[ast.If, ...]:
    """Tests at the top of a function, or of a branch of it, that some `return` follows at once."""
    body = getattr(function, "body", None)
    waiting = list(body) if isinstance(body, list) else []
    found = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If):
            waiting += [*node.body, *node.orelse]
            if any(isinstance(each, ast.Return) for each in (*node.body, *node.orelse)):
                found.append(node)
    return tuple(found)


def as_chosen(value: Value) -> Value:
    """A name, or the names in a tuple, as one of several."""
    if isinstance(value, Sequence) and value.kind == "tuple":
        value.values = [_one_of_several(each) for each in value.values]
    return _one_of_several(value)


def _one_of_several(value: Value) -> Value:
    return LibraryName(value.name, chosen=True) if isinstance(value, LibraryName) else value


def _asked(test: ast.Compare) -> str:
    """The name that decides: `kind` of `kind == "mean"` and of `"mean" in kind`."""
    within = isinstance(test.ops[0], ast.In) and isinstance(test.left, ast.Constant)
    return written(test.comparators[0] if within else test.left)


def _gives_kind(node: ast.If) -> bool:
    last, test = node.body[-1], node.test
    compares = isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Eq, ast.In))
    return compares and isinstance(last, ast.Return) and last.value is not None


def branch_that_updates(node: ast.If) -> bool | None:
    """The outcome of a test that leads to an update; None where neither does, or both."""
    taken, left = _training_calls(node)
    return taken.updates if taken.updates != left.updates else None


def option_alone(node: ast.If, outcome: bool, guards: list[str]) -> frozenset[int]:
    """The backwards of a branch that one option adds to the training (`if args.adversarial:`),
    where a run is without it."""
    test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
    is_option = isinstance(test, ast.Attribute | ast.Name) and len(guards) == 1
    if outcome or node.orelse or not is_option:
        return frozenset()
    return _training_calls(node)[0].backwards


def _backwards_of(scope: Scope, name: str) -> frozenset[int]:
    """Those inside a function of the user's, or in what an object of the user's does when it is
    called: `loss_scaler(loss, optimizer)`."""
    holder = scope.find(name)
    value = holder.variables.get(name) if holder is not None else None
    if isinstance(value, Instance):
        value = value.cls.lookup("__call__")
    if isinstance(value, Method):
        value = value.function
    return _backwards_in(value.node) if isinstance(value, Function) else frozenset()


class _TrainingCalls(NamedTuple):
    """The calls of a branch, as far as they train."""

    backwards: frozenset[int]
    names: tuple[str, ...]
    """Plain names that are called."""
    updates: bool
    scales: bool


@once
def _training_calls(node: ast.If) -> tuple[_TrainingCalls, _TrainingCalls]:
    return _calls_in(node.body), _calls_in(node.orelse)


def _calls_in(body: list[ast.stmt]) -> _TrainingCalls:
    nodes = [each for statement in body for each in walk(statement)]
    called = [each.func for each in nodes if isinstance(each, ast.Call)]
    names = {last_name(each) for each in called}
    return _TrainingCalls(
        frozenset().union(*map(_backwards_in, body)),
        tuple({each.id: None for each in called if isinstance(each, ast.Name)}),
        not names.isdisjoint(_UPDATES | _SCALES),
        not names.isdisjoint(_SCALES),
    )


@once
def _backwards_in(node: ast.AST) -> frozenset[int]:
    return frozenset(
        id(each) for each in walk(node) if isinstance(each, ast.Attribute) and each.attr in BACKWARD
    )


_UPDATES = frozenset({"step", "zero_grad", "clip_grad_norm_", "clip_grad_value_"})
_SCALES = frozenset({"scale", "scale_loss", "unscale_"})
