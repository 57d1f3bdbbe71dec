"""Lists of parameters that were chosen only by their number of dimensions: the module of them
all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import Value
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import Model, Tensor
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall
from trueloop.doctor.static.interpreter.syntax import written
from trueloop.doctor.static.interpreter.values import (
    CombinedIterable,
    DictValue,
    Parameters,
    Sequence,
)

_LISTS = ("parameters", "named_parameters")
_NUMBERS = frozenset((1, 2))


def held_whole(call: LibraryCall, given: Value | None, depth: int = 4) -> list[Model]:
    """The models all of whose matrices are certainly among the parameters `given`: those handed
    over as they are, and those of which no more is asked than that a parameter has two dimensions.
    """
    if isinstance(given, Model):
        return [given]
    if isinstance(given, Parameters):
        return list(given.models) if given.complete and not given.part else []
    if depth and isinstance(given, CombinedIterable) and given.kind == "plain":
        return [model for each in given.sources for model in held_whole(call, each, depth - 1)]
    if depth and isinstance(given, DictValue):
        return held_whole(call, given.entries.get("params"), depth - 1)
    if not depth or not isinstance(given, Sequence):
        return []
    leaves = [each for each in given.values if isinstance(each, Tensor)]
    if len(leaves) == len(given.values) == 1 and leaves[0].role == "parameter":
        return list(leaves[0].models) if _is_chosen_by_dimensions(call, given, leaves[0]) else []
    return [model for each in given.values for model in held_whole(call, each, depth - 1)]


def _is_chosen_by_dimensions(call: LibraryCall, given: Sequence, leaf: Tensor) -> bool:
    module = call.machine.modules[-1]
    if given.made is None or given.made.path != module.path:
        return False
    for node in walk(module.tree):
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and _at(node, given.made):
            return _asks_for_dimensions_alone(node)
    name = _assigned(module.tree, given.made)
    return bool(name) and _is_gathered(module.tree, name, leaf.made)


def _at(node: ast.AST, place: Location) -> bool:
    here = getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1
    return here == (place.line, place.column)


def _asks_for_dimensions_alone(node: ast.ListComp | ast.GeneratorExp) -> bool:
    generator = node.generators[0]
    leaf = _leaf_of(generator.target, generator.iter)
    return (
        len(node.generators) == 1
        and isinstance(node.elt, ast.Name)
        and node.elt.id == leaf
        and all(_is_of_dimensions(each, leaf) for each in generator.ifs)
    )


def _leaf_of(target: ast.expr, source: ast.expr) -> str:
    """The name of the parameter in a loop over a module's own list of them; empty if it is not such
    a loop."""
    function = getattr(source, "func", None)
    if not isinstance(function, ast.Attribute) or function.attr not in _LISTS:
        return ""
    if function.attr == "named_parameters":
        parts = getattr(target, "elts", [])
        target = parts[1] if len(parts) == 2 else target
    return target.id if isinstance(target, ast.Name) else ""


def _is_of_dimensions(test: ast.expr, leaf: str) -> bool:
    """`p.ndim == 2`, `p.dim() >= 2`, `len(p.shape) > 1`, `p.requires_grad`, or several of these."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return all(_is_of_dimensions(each, leaf) for each in test.values)
    if written(test) == f"{leaf}.requires_grad":
        return True
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    limit = getattr(test.comparators[0], "value", None)
    sizes = (f"{leaf}.ndim", f"{leaf}.dim()", f"len({leaf}.shape)", f"len({leaf}.size())")
    return (
        written(test.left) in sizes
        and limit in _NUMBERS
        and isinstance(test.ops[0], (ast.Eq, ast.GtE) if limit == 2 else ast.Gt)
    )


def _assigned(tree: ast.Module, place: Location) -> str:
    """The name of the list that is made empty at `place`; empty if it has none."""
    for node in walk(tree):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        # `hidden = []`, and `hidden, others = [], []`
        targets, values = getattr(target, "elts", [target]), [node.value]
        if isinstance(node.value, ast.Tuple):
            values = node.value.elts
        for name, value in zip(targets, values, strict=False):
            is_empty = isinstance(value, ast.List) and not value.elts
            if is_empty and _at(value, place) and isinstance(name, ast.Name):
                return name.id
    return ""


def _is_gathered(tree: ast.Module, name: str, source: Location) -> bool:
    """One loop over a module's parameters appends to the list, only by their dimensions."""
    appends = [node for node in walk(tree) if isinstance(node, ast.Call) and _appends(node, name)]
    loops = [node for node in walk(tree) if isinstance(node, ast.For) and _at(node.iter, source)]
    if len(appends) != 1 or len(loops) != 1:
        return False
    leaf = _leaf_of(loops[0].target, loops[0].iter)
    chosen = _holder_of(appends[0])
    if isinstance(chosen, ast.IfExp):
        # `(hidden if p.ndim == 2 else others).append(p)`
        body = chosen.body
        is_body = isinstance(body, ast.Name) and body.id == name
        if not leaf or not is_body or not _is_of_dimensions(chosen.test, leaf):
            return False
    return bool(leaf) and any(each is appends[0] for each in _reached(loops[0].body, leaf))


def _holder_of(call: ast.Call) -> ast.expr | None:
    """The list that a call adds to, or the choice of one of two."""
    function = call.func
    adds = isinstance(function, ast.Attribute) and function.attr in ("append", "extend")
    return function.value if adds and isinstance(function, ast.Attribute) else None


def _appends(call: ast.Call, name: str) -> bool:
    holder = _holder_of(call)
    holders = [holder.body, holder.orelse] if isinstance(holder, ast.IfExp) else [holder]
    return any(isinstance(each, ast.Name) and each.id == name for each in holders)


def _reached(block: list[ast.stmt], leaf: str) -> Iterator[ast.Call]:
    """The calls with nothing but the parameter, `hidden.append(p)`, that a matrix certainly comes
    to."""
    for statement in block:
        if isinstance(statement, ast.If):
            if _is_of_dimensions(statement.test, leaf):
                yield from _reached(statement.body, leaf)
                continue
            only_frozen = written(statement.test) == f"not {leaf}.requires_grad"
            if only_frozen and isinstance(statement.body[0], ast.Continue):
                continue
            return
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            arguments = statement.value.args
            if len(arguments) == 1 and written(arguments[0]) == leaf:
                yield statement.value
        elif not isinstance(statement, (ast.Assign, ast.Expr)):
            return
