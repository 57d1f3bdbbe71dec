"""Lists that get one layer in several places: `[nn.Linear(4, 4)] * n`."""

from __future__ import annotations

import ast

from trueloop.doctor.model.layer_repetition import (
    Repetition,
    appended,
    is_count,
    judge,
    repetitions,
)
from trueloop.doctor.model.things import Model
from trueloop.doctor.model.value_events import LayerRepeated
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.values import Constant, Sequence, Value


def notice_list(m: Interpreter, node: ast.BinOp, values: Sequence, times: Value) -> None:
    """`[layer] * times`."""
    if isinstance(times, Constant):
        if type(times.value) is not int or times.value < 2:
            return
    elif not is_count(m.modules[-1].tree, node):
        return
    found = repetitions(node)
    if len(found) == len(values.values):
        for each, layer in zip(found, values.values, strict=True):
            _notice(m, each, layer)


def notice_elements(m: Interpreter, node: ast.AST, layer: Model) -> None:
    """`[layer for _ in range(n)]`."""
    for each in repetitions(node):
        _notice(m, each, layer)


def notice_appended(m: Interpreter, node: ast.Call, layer: Model, before: list[Value]) -> None:
    """`layers.append(layer)`, in a loop, where it is in the list already."""
    found = appended(node)
    if found is not None and any(each is layer for each in before):
        _notice(m, found, layer)


def _notice(m: Interpreter, found: Repetition, layer: object) -> None:
    if not isinstance(layer, Model):
        return
    module = m.modules[-1]
    verdict = judge(module.tree, module.survey.sharing, found)
    # The caller makes the layer in the call, and has no name of its own for it.
    handed_over = verdict.parameter and layer.name in ("", verdict.parameter)
    if verdict.by_mistake or handed_over:
        m.emit(LayerRepeated, found.node, layer=layer)
