"""How long a learning rate's function is: the step at which what it returns has come down."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from trueloop.doctor.model.arithmetic import computed
from trueloop.doctor.model.file_origins import checkpoint_of
from trueloop.doctor.model.known_values import OpaqueObject, Unknown
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.expressions import evaluate
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.parameter_binding import bind_parameters
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import once, written
from trueloop.doctor.static.interpreter.values import (
    Constant,
    Function,
    Method,
    Scope,
    Sequence,
    Value,
)

_NAMES: dict[str, Callable[..., float]] = {
    name: getattr(math, name)
    for name in "cos sin exp sqrt log tanh pow floor ceil fabs radians".split()
} | {
    "clip": lambda x, low, high: min(max(x, low), high),
    "min": min,
    "max": max,
    "float": float,
    "int": int,
    "abs": abs,
    "round": round,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}
_LONG = 1000.0
"""Steps on trial, where the real number is not known."""
_TRIALS = (0.1 * _LONG, 0.1)
"""Values of the other names that are not known: a warm-up in steps, or a share."""
_MOST = 3
"""Names of unknown value that are tried out."""


class FunctionLength(NamedTuple):
    steps: Value
    written: str
    """As the function has it: `total_steps`."""


def length_of_function(m: Interpreter, given: Value | None) -> FunctionLength | None:
    """The quantity in a learning rate's function (`LambdaLR(optimizer, given)`) at which it ends;
    None where it has no end, or one that cannot be read."""
    step = Unknown("step")
    scope = _bound(m, given, step)
    if scope is None or scope.function is None:
        return None
    definition = scope.function.node
    counter = next((name for name, each in scope.variables.items() if each is step), "")
    free = [each for each in _read(definition) if written(each) != counter]
    m.spend(len(free), definition)
    values = {written(each): evaluate(m, each, scope) for each in free}
    known = {
        text: number for text, value in values.items() if (number := _number(value)) is not None
    }
    unknown = [text for text in values if text not in known]
    if not counter or len(unknown) > _MOST:
        return None
    function = RateFunction(definition, counter)
    for text, value in values.items():
        if any(_ends_there(function, names, text) for names in _trials(known, unknown, text)):
            return FunctionLength(value, text)
    return None


def counts_on(m: Interpreter, given: Value | None) -> bool:
    """The function, or one of a list of them, adds a number from a checkpoint to its own count:
    `lambda epoch: 0.9 ** (epoch + checkpoint["epoch"])`."""
    for each in given.values if isinstance(given, Sequence) else [given]:
        scope = _bound(m, each, Unknown("step"))
        if scope is None or scope.function is None:
            continue
        names = _read(scope.function.node)
        m.spend(len(names), scope.function.node)
        if any(checkpoint_of(evaluate(m, each, scope)) is not None for each in names):
            return True
    return False


def _bound(m: Interpreter, given: Value | None, step: Value) -> Scope | None:
    """The function's scope in a call with a number of steps."""
    args: list[Value] = []
    kwargs: dict[str, Value] = {}
    if isinstance(given, OpaqueObject) and given.kind == "functools.partial" and given.call:
        args, kwargs = given.call[1:], given.arguments
        given = given.call[0]
    if isinstance(given, Method):
        args, given = [given.receiver, *args], given.function
    if not isinstance(given, Function) or isinstance(given.node, ast.AsyncFunctionDef):
        return None
    scope = Scope(given.module, given.scope, given, given.owner)
    bind_parameters(m, given, [*args, step], kwargs, scope, None)
    return scope


def _number(value: Value) -> float | None:
    number = value.value if isinstance(value, Constant) and not value.loop_variant else None
    return float(number) if isinstance(number, (int, float)) else None


def _trials(known: dict[str, float], unknown: list[str], text: str) -> Iterator[dict[str, float]]:
    """Numbers for all names: one of unknown value has many steps, the others few or a share."""
    others = [each for each in unknown if each != text]
    long = {text: _LONG} if text in unknown else {}
    for chosen in itertools.product(_TRIALS, repeat=len(others)):
        yield known | dict(zip(others, chosen, strict=True)) | long


class RateFunction(NamedTuple):
    definition: ast.AST
    counter: str
    """The parameter that is the number of the step."""

    def __call__(self, names: dict[str, float], step: float) -> float | None:
        """The rate at a step; None where that cannot be computed."""
        local = names | {self.counter: step}
        try:
            if isinstance(self.definition, ast.Lambda):
                return _value(self.definition.body, local)
            return _returned(getattr(self.definition, "body", []), local)
        except (_NotReadError, ArithmeticError, ValueError, TypeError):
            return None


def _ends_there(function: RateFunction, names: dict[str, float], text: str) -> bool:
    """The function falls until the step `text`, and not below that after it."""
    end = names[text]
    if end < 2:
        return False
    steps = [end * each / 100 for each in (*range(101), 105, 130)]
    rates = [rate for step in steps if (rate := function(names, step)) is not None]
    if len(rates) < len(steps) or not all(map(math.isfinite, rates)):
        return False
    *course, soon, late = rates
    top = course.index(max(course))
    high, low = course[top], course[-1]
    falls = all(a >= b - 1e-9 for a, b in itertools.pairwise(course[top:]))
    if top > 50 or not falls or low < -1e-3 * high or low > 0.5 * high:
        return False
    is_gradual = course[80] > low + 1e-3 * (high - low) and course[60] < high
    over = all(each >= low - 1e-6 * high or each < 0 for each in (soon, late))
    return is_gradual and over


class _NotReadError(Exception):
    """A statement or an expression that is not plain arithmetic."""


def _returned(body: list[ast.stmt], local: dict[str, float]) -> float | None:
    for statement in body:
        if isinstance(statement, ast.Return) and statement.value is not None:
            return _value(statement.value, local)
        if isinstance(statement, ast.If):
            branch = statement.body if _value(statement.test, local) else statement.orelse
            found = _returned(branch, local)
            if found is not None:
                return found
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            local[statement.targets[0].id] = _value(statement.value, local)
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            raise _NotReadError
    return None


def _value(node: ast.expr, local: dict[str, float]) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _named(node, local)
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, local), _value(node.right, local)
        found = computed(node.op, left, right, None)
        if not isinstance(found, (int, float)):
            raise _NotReadError
        return found
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        value = _value(node.operand, local)
        return -value if isinstance(node.op, ast.USub) else not value
    if isinstance(node, ast.IfExp):
        return _value(node.body if _value(node.test, local) else node.orelse, local)
    if isinstance(node, ast.Compare):
        return _compared(node, local)
    if isinstance(node, ast.Call) and not node.keywords:
        function = _NAMES.get(last_name(node.func))
        if function is not None:
            return function(*(_value(each, local) for each in node.args))
    raise _NotReadError


def _named(node: ast.Name | ast.Attribute, local: dict[str, float]) -> float:
    text = written(node)
    if text in local:
        return local[text]
    if last_name(node) == "pi":
        return math.pi
    raise _NotReadError


def _compared(node: ast.Compare, local: dict[str, float]) -> bool:
    values = [_value(each, local) for each in (node.left, *node.comparators)]
    signs = [_COMPARISONS.get(type(each)) for each in node.ops]
    pairs = itertools.pairwise(values)
    if None in signs:
        raise _NotReadError
    return all(sign(*pair) for sign, pair in zip(signs, pairs, strict=True) if sign is not None)


@once
def _read(definition: ast.AST) -> list[ast.expr]:
    """The names that a function's body reads and does not compute, and its numbers, each once."""
    body = getattr(definition, "body", [])
    nodes = [each for part in (body if isinstance(body, list) else [body]) for each in walk(part)]
    own = {"pi"} | {
        each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    inner = {id(part) for each in nodes if isinstance(each, ast.Call) for part in walk(each.func)}
    found: dict[str, ast.expr] = {}
    for node in nodes:
        if id(node) in inner:
            continue
        if isinstance(node, ast.Attribute):
            inner.update(map(id, walk(node)))
        is_name = isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) not in own
        if is_name or (isinstance(node, ast.Constant) and isinstance(node.value, (int, float))):
            assert isinstance(node, ast.expr)
            found.setdefault(written(node), node)
    return list(found.values())
