"""How the methods of a class use what `self.name` is: as a tensor, or perhaps as a layer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.syntax import once

_OF_TENSORS = frozenset(
    "add argmax argmin bool chunk clamp clone contiguous cpu cuda detach device dim div double exp"
    " expand expand_as float flatten gather half index_select int log long masked_fill matmul max"
    " mean min mm mul new_zeros numel permute repeat reshape select shape size softmax split sqrt"
    " squeeze sub sum t T to tolist transpose type type_as unbind unsqueeze view".split()
)
"""Attributes that only tensors have, and `to`, which starts no forward pass."""
_OF_TORCH = frozenset({"torch", "F", "functional"})
_PLAIN = frozenset({"len", "int", "float", "bool", "range", "print", "isinstance"})


@once
def perhaps_layers(node: ast.AST) -> frozenset[str]:
    """The attributes that the methods of a class call, or hand on to who may call them."""
    as_tensors = {id(each) for part in walk(node) for each in _tensors_in(part)}
    return frozenset(
        each.attr
        for each in walk(node)
        if isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Load)
        and isinstance(each.value, ast.Name)
        and id(each) not in as_tensors
    )


def _tensors_in(node: ast.AST) -> Iterator[ast.AST]:
    """The operands of an expression that computes with tensors, without their indices."""
    found: list[ast.expr | None] = []
    if isinstance(node, ast.BinOp):
        found = [node.left, node.right]
    elif isinstance(node, ast.Compare):
        found = [node.left, *node.comparators]
    elif isinstance(node, ast.UnaryOp):
        found = [node.operand]
    elif _gives_one_part(node):
        found = [node.value]
    elif isinstance(node, ast.Call) and _computes(node.func):
        found = [*node.args, *(each.value for each in node.keywords)]
    for each in found:
        while isinstance(each, ast.Subscript):
            each = each.value
        if each is not None:
            yield each


def _gives_one_part(node: ast.AST) -> TypeGuard[ast.Return | ast.Attribute]:
    """`return self.table[classes]`, or `self.table.shape`."""
    if isinstance(node, ast.Return):
        return isinstance(node.value, ast.Subscript)
    return isinstance(node, ast.Attribute) and node.attr in _OF_TENSORS


def _computes(function: ast.expr) -> bool:
    """`torch.matmul`, `F.embedding`, `len`: it calls none of its arguments."""
    if isinstance(function, ast.Name):
        return function.id in _PLAIN
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and function.id in _OF_TORCH


@once
def attributes_read(function: ast.AST) -> frozenset[str]:
    return frozenset(
        node.attr
        for node in walk(function)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


@once
def hands_parameters_of(function: ast.AST) -> frozenset[str]:
    """The containers of layers whose parameters a function returns, one by one:
    `found += [self.heads[i].weight, self.heads[i].bias]`, and `return found`."""
    returns = [each.value for each in walk(function) if isinstance(each, ast.Return) and each.value]
    names = {each.id for value in returns for each in walk(value) if isinstance(each, ast.Name)}
    sources = [*returns, *(value for each in walk(function) for value in _put_into(each, names))]
    loops = _containers_of_variables(function)
    parts = (part for source in sources for part in _elements(source))
    return frozenset(name for part in parts for name in _container_of(part, loops))


def _put_into(node: ast.AST, names: set[str]) -> list[ast.expr]:
    """The values that a statement or a call puts into a list with one of these names."""
    if isinstance(node, ast.AugAssign):
        return [node.value] if _is_one_of(node.target, names) else []
    if isinstance(node, ast.Assign):
        return [node.value] if _is_one_of(node.targets[0], names) else []
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return []
    adds = node.func.attr in ("append", "extend") and _is_one_of(node.func.value, names)
    return node.args if adds else []


def _is_one_of(target: ast.expr, names: set[str]) -> bool:
    return isinstance(target, ast.Name) and target.id in names


def _elements(value: ast.AST) -> Iterator[ast.AST]:
    """The elements of lists, and what a comprehension, `list(...)` or a sum of lists is made of."""
    waiting = [value]
    for each in waiting:
        if isinstance(each, (ast.List, ast.Tuple)):
            waiting += each.elts
        elif isinstance(each, (ast.ListComp, ast.GeneratorExp)):
            waiting.append(each.elt)
        elif isinstance(each, ast.Starred):
            waiting.append(each.value)
        elif isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add):
            waiting += [each.left, each.right]
        elif isinstance(each, ast.Dict):  # `{"params": head.parameters(), "lr": rate}`
            waiting += each.values
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
            waiting += each.args if each.func.id in ("list", "tuple", "chain") else []
        else:
            yield each


def _container_of(part: ast.AST, loops: dict[str, list[str]]) -> list[str]:
    """`heads` of `self.heads[i].weight` and of `head.parameters()` where `head` goes over them."""
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
        layer = part.func.value if part.func.attr == "parameters" else None
    elif isinstance(part, ast.Attribute) and part.attr in ("weight", "bias"):
        layer = part.value
    else:
        layer = None
    if isinstance(layer, ast.Name):
        return loops.get(layer.id, [])
    if isinstance(layer, ast.Subscript) and isinstance(layer.value, ast.Attribute):
        return [layer.value.attr]
    return []


def _containers_of_variables(function: ast.AST) -> dict[str, list[str]]:
    """Variable -> the attributes that a loop with it goes over."""
    found: dict[str, list[str]] = {}
    for each in walk(function):
        if isinstance(each, (ast.For, ast.comprehension)):
            over = [part.attr for part in walk(each.iter) if isinstance(part, ast.Attribute)]
            for target in walk(each.target):
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).extend(over)
    return found
