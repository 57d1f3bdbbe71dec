"""Windows of micro-batches, and counters of them that are set back by hand: `if count == n: ...;
count = 0`."""

from __future__ import annotations

import ast

from trueloop.doctor.model.things import AccumulationWindow, Loop, Size
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.option_defaults import whole_number
from trueloop.doctor.static.interpreter.syntax import once, written
from trueloop.doctor.static.interpreter.values import Constant, Scope, Unknown, Value

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
    counter = _set_back(node)
    if counter is None or not m.turns:
        return None
    assert isinstance(node.test, ast.Compare)
    count, size = m.evaluate(counter, scope), m.evaluate(node.test.comparators[0], scope)
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
    test = node.test
    if not isinstance(test, ast.Compare) or not isinstance(test.left, (ast.Name, ast.Attribute)):
        return None
    if len(test.ops) > 1 or not isinstance(test.ops[0], (ast.Eq, ast.GtE)):
        return None
    name = written(test.left)
    for each in node.body:
        targets = each.targets if isinstance(each, ast.Assign) else ()
        if any(written(target) == name for target in targets):
            value = getattr(each.value, "value", None) if isinstance(each, ast.Assign) else None
            return test.left if value == 0 and value is not False else None
    return None
