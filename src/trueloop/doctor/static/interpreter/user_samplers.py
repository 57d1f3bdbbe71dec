"""Samplers of the user's own classes: what their order depends on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import Sampler
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import Class

DISTRIBUTED = "torch.utils.data.DistributedSampler"


def distributed_sampler(cls: Class, bases: list[str]) -> Sampler | None:
    """A sampler of a class derived from `DistributedSampler`, before its `__init__`; None for any
    other class, and where the epoch comes from elsewhere than `set_epoch`."""
    if DISTRIBUTED not in bases:
        return None
    own = [each for each in cls.lineage() if isinstance(each, Class)]
    if any(_counts_epochs(each.node) for each in own):
        return None
    orders = [each.namespace["__iter__"] for each in own if "__iter__" in each.namespace]
    if orders and not any(_reads_epoch(each.node) for each in own):
        return None
    return Sampler(kind=DISTRIBUTED, cls=cls, known=True, shuffle=True)


def _epochs(cls: ast.AST) -> Iterator[ast.Attribute]:
    """Where a class speaks of `self.epoch`."""
    for node in walk(cls):
        if isinstance(node, ast.Attribute) and node.attr == "epoch":
            yield node


@once
def _counts_epochs(cls: ast.AST) -> bool:
    """It sets its epoch itself, or overrides `set_epoch`."""
    functions = (node for node in walk(cls) if isinstance(node, ast.FunctionDef))
    return any(node.name == "set_epoch" for node in functions) or any(
        isinstance(node.ctx, ast.Store) for node in _epochs(cls)
    )


@once
def _reads_epoch(cls: ast.AST) -> bool:
    return any(isinstance(node.ctx, ast.Load) for node in _epochs(cls))
