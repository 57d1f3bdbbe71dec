"""Functions that make a network only to draw the learning rates of a schedule."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from trueloop.doctor.model.nodes import walk

_STARTS = frozenset({"parameters", "train", "to", "cuda", "zero_grad"})
"""The attributes of a network that a training needs."""


def only_draws(function: ast.AST) -> bool:
    """A function collects the rates of a schedule, and nothing of the network that it makes leaves
    it: no output, no loss, no weight."""
    nodes = walk(function)
    parents = {id(part): each for each in nodes for part in ast.iter_child_nodes(each)}
    loads = [
        each for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    ]

    def uses(name: str) -> Iterable[tuple[ast.Name, ast.AST]]:
        return ((each, parents[id(each)]) for each in loads if each.id == name)

    networks = _owners(nodes, "parameters")
    losses = _owners(nodes, "backward")
    outputs: set[str] = set()
    of_losses: set[int] = set()
    made: set[str] = set()
    for each in nodes:
        target = each.targets[0] if isinstance(each, ast.Assign) else None
        if not isinstance(each, ast.Assign) or not isinstance(target, ast.Name):
            continue
        if target.id in losses:
            of_losses.update(map(id, walk(each.value)))
        if isinstance(each.value, ast.Call):
            made.add(target.id)
            if getattr(each.value.func, "id", "") in networks:
                outputs.add(target.id)
    return (
        any(map(_collects_a_rate, nodes))
        and bool(networks)
        and networks <= made
        and all(_trains(one, by) for name in networks for one, by in uses(name))
        and all(getattr(by, "attr", "") == "backward" for name in losses for _, by in uses(name))
        and all(id(one) in of_losses for name in outputs for one, _ in uses(name))
    )


def _owners(nodes: list[ast.AST], attribute: str) -> set[str]:
    """The variables of which an attribute is read."""
    return {
        each.value.id
        for each in nodes
        if isinstance(each, ast.Attribute)
        and each.attr == attribute
        and isinstance(each.value, ast.Name)
    }


def _collects_a_rate(node: ast.AST) -> bool:
    """`rates.append(optimizer.param_groups[0]["lr"])`, or of `schedule.get_last_lr()`."""
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "append":
        return False
    parts = (each for argument in node.args for each in walk(argument))
    words = {getattr(each, "attr", getattr(each, "value", None)) for each in parts if _names(each)}
    return not words.isdisjoint({"lr", "get_last_lr", "get_lr"})


def _names(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _trains(network: ast.Name, by: ast.AST) -> bool:
    """A use that only trains it: `net(x)`, `net.parameters()`."""
    if isinstance(by, ast.Attribute):
        return by.attr in _STARTS
    return isinstance(by, ast.Call) and by.func is network
