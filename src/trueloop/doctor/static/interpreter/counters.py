"""Windows of micro-batches, and counters of them that are set back by hand: `if count == n: ...;
count = 0`."""

from __future__ import annotations

import ast
from typing import NamedTuple

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import AccumulationWindow, Loop, Size
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.option_defaults import whole_number
from trueloop.doctor.static.interpreter.syntax import once, written
from trueloop.doctor.static.interpreter.values import (
    Constant,
    Function,
    Instance,
    Scope,
    Unknown,
    Value,
)

TURNS = 2
"""In a window of the few turns that represent all."""


def counted_loop(m: Interpreter, old: Value, since: int | None) -> Loop | None:
    """The loop whose turns `count += 1` counts: once in each, from the zero that it is set to each
    time before the loop begins. `since`: when it was last set."""
    loop = m.turns[-1].loop
    if loop.kind != "batches" or len(m.turns) < 2 or m.guards or m.windows:
        return None
    if not isinstance(old, Constant) or since is None:
        return None
    afresh = m.turn_starts[-2] <= since < m.turn_starts[-1]
    return loop if afresh and old.value == m.turns[-1].index else None


def window_of(m: Interpreter, value: Value, loop: Loop | None) -> AccumulationWindow:
    """The window that a count modulo `value` closes."""
    size = m.size(value)
    return AccumulationWindow(size, loop, by_default(m, size))


def by_default(m: Interpreter, size: Size) -> int | None:
    """A quantity in a run without options; None where it is not known then either."""
    surveys = [scope.module.survey for scope in m.namespaces.values()]
    return whole_number([*(each.survey for each in m.modules), *surveys], size)


def once_by_default(m: Interpreter, size: Size) -> int | None:
    """1 where an option says how many turns a loop makes, and says one unless it is given."""
    return 1 if isinstance(size, str) and by_default(m, size) == 1 else None


def closes_window(m: Interpreter, node: ast.If, scope: Scope) -> bool | None:
    """The outcome of a test whether a counter has come to the size of its window, which the branch
    sets back; None for other tests."""
    counter = (_set_back(node) or _set_back_by_method(m, node, scope)) if m.turns else None
    if counter is not None:
        assert isinstance(node.test, ast.Compare)
        count, size = m.evaluate(counter, scope), m.evaluate(node.test.comparators[0], scope)
    elif m.turns and (kept := _kept_by_object(m, node, scope)) is not None:
        count, size = kept
    else:
        return None
    if not isinstance(count, Constant) or not isinstance(count.value, int):
        return None
    if isinstance(size, Constant) and not (isinstance(size.value, int) and size.value > 1):
        return None
    if not isinstance(size, (Constant, Unknown)):
        return None
    if isinstance(size, Unknown) and m.window_of_one(size.key):
        return True
    loop = count.counts if isinstance(count.counts, Loop) else None
    m.tested.append(window_of(m, size, loop))
    return count.value >= TURNS


@once
def _set_back(node: ast.If) -> ast.expr | None:
    """The counter that a test compares and its branch sets to zero."""
    counter = _compared(node.test)
    if counter is None:
        return None
    name = written(counter)
    for each in node.body:
        targets = each.targets if isinstance(each, ast.Assign) else ()
        if any(written(target) == name for target in targets):
            value = getattr(each.value, "value", None) if isinstance(each, ast.Assign) else None
            return counter if value == 0 and value is not False else None
    return None


def _compared(test: ast.expr) -> ast.Name | ast.Attribute | None:
    """The variable of `count == size` and of `count >= size`."""
    if not isinstance(test, ast.Compare) or not isinstance(test.left, (ast.Name, ast.Attribute)):
        return None
    is_window = len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.GtE))
    return test.left if is_window else None


def _set_back_by_method(m: Interpreter, node: ast.If, scope: Scope) -> ast.expr | None:
    """The same where a method sets it to zero: `if self.count == self.size: ...; self.reset()`."""
    counter = _compared(node.test)
    if not isinstance(counter, ast.Attribute):
        return None
    called = _called_on(node, written(counter.value))
    owner = m.evaluate(counter.value, scope) if called else None
    if not isinstance(owner, Instance):
        return None
    methods = [owner.cls.lookup(each) for each in called]
    sets = any(isinstance(e, Function) and counter.attr in _zeroed(e.node) for e in methods)
    return counter if sets else None


def _called_on(node: ast.If, holder: str) -> tuple[str, ...]:
    """The methods of an object that the branch calls."""
    calls = [each.value for each in node.body if isinstance(each, (ast.Expr, ast.Assign))]
    told = [each.func for each in calls if isinstance(each, ast.Call)]
    return tuple(
        each.attr
        for each in told
        if isinstance(each, ast.Attribute) and written(each.value) == holder
    )


class _AskedObject(NamedTuple):
    """`if updates.ready(): updates.step()`: an object is asked, and called to update."""

    holder: ast.Name | ast.Attribute
    test: str
    """The method, or property, that is asked."""
    called: tuple[str, ...]
    """The methods that the branch calls."""


def _kept_by_object(m: Interpreter, node: ast.If, scope: Scope) -> tuple[Value, Value] | None:
    """The count of an object, and the size of its window, where the object is asked whether the
    count has come to the size, and the branch calls a method that updates and sets it back."""
    asked = asks_object(node)
    if asked is None:
        return None
    value = m.evaluate(asked.holder, scope)
    if not isinstance(value, Instance):
        return None
    method = value.cls.lookup(asked.test)
    name, size = _comparison(method.node) if isinstance(method, Function) else ("", "")
    told = [value.cls.lookup(each) for each in asked.called]
    if not name or not any(
        isinstance(each, Function) and name in _resets(each.node) for each in told
    ):
        return None
    kept = [value.attributes.get(each) for each in (name, size)]
    return (kept[0], kept[1]) if kept[0] is not None and kept[1] is not None else None


@once
def asks_object(node: ast.If) -> _AskedObject | None:
    """The object whose method or property a test asks, and that the branch calls methods of."""
    test = node.test
    if isinstance(test, ast.Call):
        test = test.func if not test.args and not test.keywords else test
    if not isinstance(test, ast.Attribute) or not isinstance(test.value, (ast.Name, ast.Attribute)):
        return None
    names = _called_on(node, written(test.value))
    return _AskedObject(test.value, test.attr, names) if names else None


@once
def _comparison(method: ast.AST) -> tuple[str, str]:
    """The two attributes that a method compares and does nothing else: `return self.count ==
    self.size`; empty for other methods."""
    body = getattr(method, "body", None)
    last = body[-1] if isinstance(body, list) else None
    test = last.value if isinstance(last, ast.Return) else None
    plain = isinstance(body, list) and all(
        isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in body[:-1]
    )
    if not plain or not isinstance(test, ast.Compare) or len(test.ops) > 1:
        return "", ""
    if not isinstance(test.ops[0], (ast.Eq, ast.GtE)):
        return "", ""
    left, right = _own(method, test.left), _own(method, test.comparators[0])
    return (left, right) if left and right else ("", "")


@once
def _resets(method: ast.AST) -> frozenset[str]:
    """The attributes that a method sets to zero each time it is called, where it makes a step."""
    steps = any(
        isinstance(each, ast.Attribute) and each.attr == "step" and isinstance(each.ctx, ast.Load)
        for each in walk(method)
    )
    return _zeroed(method) if steps else frozenset()


@once
def _zeroed(method: ast.AST) -> frozenset[str]:
    """The attributes that a method sets to zero each time it is called."""
    return frozenset(
        _own(method, each.targets[0])
        for each in getattr(method, "body", None) or []
        if isinstance(each, ast.Assign) and getattr(each.value, "value", None) == 0
    )


def _own(method: ast.AST, node: ast.expr) -> str:
    """The name of an attribute of the object that a method belongs to."""
    args = getattr(method, "args", None)
    first = next((each.arg for each in args.args), None) if args is not None else None
    is_own = isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == first
    return node.attr if is_own and isinstance(node, ast.Attribute) else ""
