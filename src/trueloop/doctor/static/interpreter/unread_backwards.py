"""The backwards that a run has not come to: whether one of them may belong to what it did."""

from __future__ import annotations

import ast

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.survey import BACKWARD
from trueloop.doctor.static.interpreter.syntax import nodes_of, once
from trueloop.doctor.static.interpreter.values import Function, Module

_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def unread_backward(m: Interpreter) -> bool:
    """Code of this run mentions a backward that the run has not called, and might have."""
    read = {id(each): each for each in (m.modules[0], *m.entered.values())}
    known = m.backwards | m.passed_by
    if len(m.reach.passed_alone) == 1:
        known = known.union(*m.reach.passed_alone.values())
    return any(
        backward not in known and not _is_out_of_reach(m, module, backward)
        for module in read.values()
        for backward in module.survey.backwards
    )


def _is_out_of_reach(m: Interpreter, module: Module, backward: int) -> bool:
    """It is in a function that nothing in this run asks for, or in a method that no object of
    this run has: a different trainer's, say, whose class is a base of this one's."""
    holder = _holders(module.tree).get(backward)
    if holder is None or id(holder[1]) in m.entered:
        return False
    cls, function = holder
    if cls is None:
        names = m.namespaces.get(id(module))
        return names is None or (module is not m.modules[0] and function.name in names.waiting)
    if id(cls) in m.reach.given_away or function.name in m.reach.unresolved:
        return False
    found = (each.lookup(function.name) for each in m.reach.classes_made.values())
    return not any(isinstance(each, Function) and each.node is function for each in found)


@once
def _holders(tree: ast.Module) -> dict[int, tuple[ast.ClassDef | None, _FunctionNode]]:
    """Backwards in functions and methods at the top of a file, by the identity of their nodes."""
    found: dict[int, tuple[ast.ClassDef | None, _FunctionNode]] = {}
    if not any(each.attr in BACKWARD for each in nodes_of(tree, ast.Attribute)):
        return found
    for outer in tree.body:
        cls = outer if isinstance(outer, ast.ClassDef) else None
        for each in outer.body if isinstance(outer, ast.ClassDef) else [outer]:
            if isinstance(each, _FunctionNode):
                for node in walk(each):
                    if isinstance(node, ast.Attribute) and node.attr in BACKWARD:
                        found[id(node)] = cls, each
    return found
