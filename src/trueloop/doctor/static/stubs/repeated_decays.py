"""Decays that are applied to their own last value, in the loop that they count."""

from __future__ import annotations

import ast

from trueloop.doctor.model.known_values import loop_of
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.value_events import DecayedAgain
from trueloop.doctor.static.interpreter.decays import Decay
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.syntax import written
from trueloop.doctor.static.interpreter.values import Instance, Scope


def notice(m: Interpreter, node: ast.Assign | ast.AugAssign, decay: Decay, scope: Scope) -> None:
    """Inform the rules, before the statement runs, if the variable is older than this turn."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    if not m.turns or _is_set_elsewhere(m, node, target):
        return
    if isinstance(target, ast.Subscript):
        if not _is_of_parameter_group(m, target, scope):
            return
    else:
        since = _assigned_at(m, target, scope)
        if since is None or since >= m.turn_starts[-1]:
            return
    for count in decay.of:
        for part in walk(count):
            if isinstance(part, (ast.Name, ast.Attribute)) and loop_of(m.evaluate(part, scope)):
                m.emit(DecayedAgain, node, variable=decay.variable, count=written(part))
                return


def _assigned_at(m: Interpreter, target: ast.expr, scope: Scope) -> int | None:
    if isinstance(target, ast.Name):
        holder = scope.find(target.id)
        return holder.assigned_at.get(target.id) if holder is not None else None
    if isinstance(target, ast.Attribute):
        owner = m.evaluate(target.value, scope)
        return owner.assigned_at.get(target.attr, 0) if isinstance(owner, Instance) else 0
    return None


def _is_of_parameter_group(m: Interpreter, target: ast.Subscript, scope: Scope) -> bool:
    """`group["lr"]` in a loop over `optimizer.param_groups`, or an entry of one of them."""
    if "param_groups" in written(target.value):
        return True
    names = [turn.loop for turn in m.turns if written(target.value) in turn.loop.variables]
    return any("param_groups" in loop.over for loop in names)


def _is_set_elsewhere(m: Interpreter, node: ast.stmt, target: ast.expr) -> bool:
    """The function around sets the same entry, or attribute, to something else."""
    if isinstance(target, ast.Name):
        return False
    text = written(target)
    return any(
        each is not node and written(other) == text
        for each in walk(m.calls[-1][1] if m.calls else m.modules[-1].tree)
        if isinstance(each, ast.Assign)
        for other in each.targets
    )
