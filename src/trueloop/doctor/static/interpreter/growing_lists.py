"""Lists that statements and calls add to: `items += more`, `items.append(one)`."""

from __future__ import annotations

import ast

from trueloop.doctor.model.events import TensorRetained
from trueloop.doctor.model.known_values import contents
from trueloop.doctor.model.optimizer_events import GroupAdded
from trueloop.doctor.model.things import NOWHERE, Model, Tensor
from trueloop.doctor.static.interpreter.emptied_holders import is_let_go
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.list_lengths import note_added
from trueloop.doctor.static.interpreter.loops import adds_in_part
from trueloop.doctor.static.interpreter.syntax import written
from trueloop.doctor.static.interpreter.values import DictValue, Parameters, Sequence, Value
from trueloop.doctor.static.stubs import repeated_layers
from trueloop.doctor.static.stubs.optimizers import holder_of
from trueloop.doctor.static.stubs.padded_lists import filled_up


def add_to_list(m: Interpreter, items: Sequence, value: Value, node: ast.AugAssign) -> None:
    """`items += value`."""
    if isinstance(value, Sequence):
        extend(m, items, value.values, node.target, node)
        filled_up(items, [value])
        items.open |= value.open
        items.uncounted |= value.length != len(value.values)
        return
    extend(m, items, [value] if isinstance(value, Parameters) else [], node.target, node)
    items.uncounted = True
    items.open |= not isinstance(value, Parameters)


def extend(
    m: Interpreter, items: Sequence, values: list[Value], holder: ast.expr, node: ast.AST
) -> None:
    """Add to a list, which may outlive the turn."""
    note_added(m, items, node, len(values))
    items.grown = items.grown or adds_in_part(m, items)
    m.history.write(items)
    if not items.grown:
        m.history.extended.append(id(items))
    if items.values and (optimizer := holder_of(items.values[0])) is not None:
        m.emit(GroupAdded, node, optimizer=optimizer)
    for value in values:
        if isinstance(value, Model) and isinstance(node, ast.Call) and m.turns:
            repeated_layers.notice_appended(m, node, value, items.values)
        items.add(value)
        if not m.predates_turn(items.turns):
            continue
        alone = isinstance(value, Tensor) and len(values) == 1
        given = node.args if alone and isinstance(node, ast.Call) else []
        for tensor in _tensors_of(value):
            if tensor.graph:
                m.emit(
                    TensorRetained, node, tensor=tensor, how="append", holder=written(holder),
                    container=items, what=m.place(given[-1]) if given else NOWHERE,
                    since=items.turns, let_go=is_let_go(m, node, holder),
                )  # fmt: skip


def _tensors_of(value: Value) -> list[Tensor]:
    """A tensor, or those of an entry: `history.append((step, loss))`, `outputs.append({"loss":
    loss})`."""
    held = contents(value) if isinstance(value, (Sequence, DictValue)) else [value]
    return [each for each in held if isinstance(each, Tensor)]
