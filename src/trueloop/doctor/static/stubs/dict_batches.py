"""Batches that are dicts, and loops that take their length for the number of samples."""

from __future__ import annotations

import ast

from trueloop.doctor.model.batch_lengths import batch_name, counted_lengths, of_dicts, returns_dict
from trueloop.doctor.model.things import Dataset, Loader
from trueloop.doctor.model.value_events import KeysCounted
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    DictValue,
    Function,
    Sequence,
    Value,
    constant,
)

_DEEP = 6


def gives_dicts(call: LibraryCall, dataset: Dataset | None) -> bool:
    """The batches of a loader that a call makes are plain dicts."""
    batch_size = call.arg(1, "batch_size")
    if call.open or (batch_size is not None and constant(batch_size, 1) is None):
        return False
    collate = call.arg(6, "collate_fn", NONE)
    if isinstance(collate, Function):
        return returns_dict(collate.node)
    return constant(collate, 0) is None and _has_dicts(call.arg(0, "dataset"), dataset)


def _has_dicts(given: Value | None, dataset: Dataset | None) -> bool:
    """Each sample is a plain dict."""
    if isinstance(given, Sequence):
        return bool(given.values) and all(isinstance(each, DictValue) for each in given.values)
    for _ in range(_DEEP):
        if dataset is None:
            break
        if isinstance(dataset.cls, Class):
            found = dataset.cls.lookup("__getitem__")
            return isinstance(found, Function) and of_dicts(dataset.cls.node, found.node)
        dataset = dataset.parent
    return False


def notice(m: Interpreter, node: ast.AST, loader: Loader | None) -> None:
    """A loop over a loader fetches a batch."""
    if loader is None or not loader.dict_batches:
        return
    tree = m.modules[-1].tree
    if isinstance(node, (ast.For, ast.AsyncFor)):
        found = counted_lengths(tree, node.body, batch_name(node))
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        found = counted_lengths(tree, [node.elt], batch_name(node.generators[0]))
    else:
        return
    for call in found:
        m.emit(KeysCounted, call, batch=getattr(call.args[0], "id", ""))
