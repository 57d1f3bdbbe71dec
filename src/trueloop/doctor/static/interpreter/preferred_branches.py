"""Which branch a run prefers where the source leaves a test open."""

from __future__ import annotations

import ast

from trueloop.doctor.static.interpreter.branches import (
    last_of_kinds,
    returns_without_option,
    searches,
)
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.syntax import once, written
from trueloop.doctor.static.interpreter.values import Scope
from trueloop.doctor.static.interpreter.ways_out import returns_either


def preferred_outcome(m: Interpreter, node: ast.If, scope: Scope) -> bool | None:
    """The outcome to prefer where the source leaves a test open: the one that continues."""
    if m.turns and isinstance(node.body[-1], ast.Break) and _finds_something(m, node):
        return True
    if m.project.leaves(node.body):
        if m.calls and last_of_kinds(m.calls[-1][1]) is node:
            return True
        if returns_either(node):
            return None
        if len(m.turns) == 1 and m.calls and id(node) in searches(m.calls[-1][1]):
            return _found_by_search(m)
        files = (scope.module.survey, m.modules[0].survey)
        return not m.policy.optional and returns_without_option(node, files)
    if m.project.leaves(node.orelse):
        return True
    return False if m.turns and scope.module.survey.ends_loop(node.body) else None


def _finds_something(m: Interpreter, node: ast.If) -> bool:
    """`if row[k] != pad: last = states[k]; break`: with all options, the last turn does."""
    turn = m.turns[-1]
    is_last = turn.loop.kind == "other" and turn.index == turn.loop.simulated - 1
    return m.policy.optional and is_last and len(node.body) > 1


def _found_by_search(m: Interpreter) -> bool | None:
    """A search that is made once comes to the last of its items with all options; without them to
    the item that a default names, or to the last. In a loop, each turn may find a different one."""
    m.reach.searched = True
    turn = m.turns[-1]
    if turn.index == turn.loop.simulated - 1:
        return True
    return False if m.policy.optional else None


def preferred_way(m: Interpreter, node: ast.IfExp) -> bool | None:
    """Of `net if ranks == 1 else Parallel(net)`: what an option adds is the second way."""
    if not isinstance(node.orelse, ast.Call) or not isinstance(
        node.body, (ast.Name, ast.Attribute)
    ):
        return None
    plain = written(node.body)
    return not m.policy.optional if plain in map(written, node.orelse.args) else None


@once
def choice_of(node: ast.BoolOp) -> ast.IfExp | None:
    """`rank == 0 and save()`, whose value nobody uses, as `save() if rank == 0 else None`."""
    *tests, last = node.values
    if not isinstance(last, ast.Call):
        return None
    test = tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(node.op, tests), node)
    nothing = ast.copy_location(ast.Constant(None), node)
    ways = (last, nothing) if isinstance(node.op, ast.And) else (nothing, last)
    return ast.copy_location(ast.IfExp(test, *ways), node)
