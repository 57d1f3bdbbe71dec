"""Ticks of schedules that no run comes to: under a test of two texts that are settings of the
program (`if unit == self.config.unit: self.schedule.step()`) and that differ."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import nodes_of, once
from trueloop.doctor.static.interpreter.values import Constant, Module, Scope
from trueloop.doctor.static.interpreter.ways_out import leaves

_OFF = frozenset({"", "none", "off", "no", "never", "false", "null", "constant", "const", "fixed"})
"""Texts that say that there is nothing to step, on purpose."""


def note(m: Interpreter, node: ast.If, outcome: bool, scope: Scope) -> None:
    """Remember the ticks that a test keeps the run from."""
    found = _ticks_by_test(scope.module.tree).get(id(node))
    if found is None or found[0] is outcome:
        return
    assert isinstance(node.test, ast.Compare)
    sides = (node.test.left, node.test.comparators[0])
    values = [m.evaluate(side, scope) for side in sides]
    texts = [each.value for each in values if isinstance(each, Constant) and not each.loop_variant]
    if len(texts) < 2 or not all(isinstance(each, str) for each in texts):
        return
    if any(each.lower() in _OFF for each in texts):
        return
    if all(_is_set_once(m, side) for side in sides):
        m.ticks_passed_by[id(node)] = (outcome, m.place(node), found[1])


def never_reached(m: Interpreter) -> dict[str, Location]:
    """Names of which each `step` of the program is one that the run was kept from: where it was."""
    kept = [
        (place, ticks)
        for test, (outcome, place, ticks) in m.ticks_passed_by.items()
        if (test, not outcome) not in m.reached
    ]
    where = {tick: place for place, ticks in kept for tick in ticks}
    found: dict[str, Location] = {}
    others: set[str] = set()
    for module in _modules(m):
        others |= module.survey.left_out
        for node in _steps(module.tree):
            name = last_name(node.value)
            if id(node) in where:
                found[name] = where[id(node)]
            else:
                others.add(name)
    return {name: place for name, place in found.items() if name not in others}


def _modules(m: Interpreter) -> list[Module]:
    return [scope.module for scope in m.namespaces.values()]


def _steps(tree: ast.AST) -> Iterator[ast.Attribute]:
    return (each for each in nodes_of(tree, ast.Attribute) if each.attr == "step")


def _is_set_once(m: Interpreter, side: ast.expr) -> bool:
    """A text, a parameter, or a setting that the program gives one value."""
    if isinstance(side, ast.Constant):
        return True
    if isinstance(side, ast.Name):
        return all(_stores(module.tree, side.id) <= 1 for module in _modules(m))
    return isinstance(side, ast.Attribute) and not any(
        side.attr in _attributes_set(module.tree) for module in _modules(m)
    )


def _stores(tree: ast.AST, name: str) -> int:
    """How often a name is given a value; as the variable of a loop, often."""
    plain = sum(
        isinstance(target, ast.Name) and target.id == name
        for node in nodes_of(tree, ast.Assign)
        for target in node.targets
    )
    names = (each for each in nodes_of(tree, ast.Name) if isinstance(each.ctx, ast.Store))
    every = sum(each.id == name for each in names)
    return plain if plain == every else 2


@once
def _attributes_set(tree: ast.AST) -> frozenset[str]:
    """The attributes that something other than an `__init__` sets."""
    begun = {
        id(each)
        for function in nodes_of(tree, ast.FunctionDef)
        if function.name == "__init__"
        for each in walk(function)
    }
    return frozenset(
        each.attr
        for each in nodes_of(tree, ast.Attribute)
        if isinstance(each.ctx, ast.Store) and id(each) not in begun
    )


@once
def _ticks_by_test(tree: ast.AST) -> dict[int, tuple[bool, tuple[int, ...]]]:
    """Tests of a file on two values being equal, by identity: the outcome that leads to calls of
    `step`, and these, by identity."""
    found: dict[int, tuple[bool, tuple[int, ...]]] = {}
    for node in nodes_of(tree, ast.If):
        if _compares(node, ast.Eq) and not node.orelse and (ticks := _ticks_in(node.body)):
            found[id(node)] = True, ticks
    for function in nodes_of(tree, ast.FunctionDef):
        for number, each in enumerate(function.body):
            if not isinstance(each, ast.If) or not _compares(each, ast.NotEq):
                continue
            after = function.body[number + 1 :]  # `if unit != self.unit: return`
            if leaves(each.body[-1]) and (ticks := _ticks_in(after)):
                found[id(each)] = False, ticks
    return found


def _compares(node: ast.If, how: type[ast.cmpop]) -> bool:
    test = node.test
    return isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], how)


def _ticks_in(body: list[ast.stmt]) -> tuple[int, ...]:
    return tuple(
        id(each)
        for statement in body
        for each in walk(statement)
        if isinstance(each, ast.Attribute) and each.attr == "step"
    )
