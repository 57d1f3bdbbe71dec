"""Means of a column, group by group: `table[value] = target[column == value].mean()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.table_events import SummedByGroup
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.passed_arguments import where_variable_passed
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import nodes_of, once
from trueloop.doctor.static.interpreter.values import Value


def notice_group(m: Interpreter, column: Value, result: Value, node: ast.AST) -> None:
    """`target[column == value]`, whose mean goes into a table under `value`: inform the rules."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, (ast.Compare, ast.Name)):
        return
    around = m.calls[-1][1] if m.calls else m.modules[0].tree
    if id(node) not in _averaged(around):
        return
    name = node.value
    where = where_variable_passed(m, node, name.id) if isinstance(name, ast.Name) else node
    m.emit(SummedByGroup, where, column=column, result=result)


_MEANS = frozenset("mean sum median nanmean average fmean".split())


@once
def _averaged(definition: ast.AST) -> frozenset[int]:
    """The parts of a column that belong to one group, `target[column == value]`, of which a loop
    over the groups stores a mean under the group: by identity."""
    found: set[int] = set()
    for loop in nodes_of(definition, ast.For):
        if isinstance(loop.target, ast.Name):
            found |= _stored_means(loop, loop.target.id)
    for table in nodes_of(definition, ast.DictComp):
        target = table.generators[0].target
        if isinstance(target, ast.Name) and _is_name(table.key, target.id):
            found |= {id(each) for each in _parts_averaged(table.value, target.id, {}, {})}
    return frozenset(found)


def _stored_means(loop: ast.For, group: str) -> set[int]:
    masks: dict[str, ast.expr] = {}
    parts: dict[str, ast.expr] = {}
    found: set[int] = set()
    for statement in loop.body:
        if not isinstance(statement, ast.Assign):
            continue
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Name):
            kept = masks if isinstance(value, ast.Compare) else parts
            kept[target.id] = value
        elif isinstance(target, ast.Subscript) and _is_name(target.slice, group):
            found |= {id(each) for each in _parts_averaged(value, group, masks, parts)}
    return found


def _parts_averaged(
    value: ast.expr, group: str, masks: dict[str, ast.expr], parts: dict[str, ast.expr]
) -> Iterator[ast.Subscript]:
    """The parts of one group whose means, or sums, an expression is computed from."""
    for call in walk(value):
        if not isinstance(call, ast.Call) or last_name(call.func) not in _MEANS:
            continue
        held: ast.expr | None = next(iter(call.args), None)
        if held is None and isinstance(call.func, ast.Attribute):
            held = call.func.value
        part = parts.get(held.id, held) if isinstance(held, ast.Name) else held
        if not isinstance(part, ast.Subscript):
            continue
        index = part.slice
        mask = masks.get(index.id) if isinstance(index, ast.Name) else index
        if not isinstance(mask, ast.Compare) or not isinstance(mask.ops[0], ast.Eq):
            continue
        if any(_is_name(side, group) for side in (mask.left, *mask.comparators)):
            yield part


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
