"""Does the program read the content of a container, or does it only ever add to it?

Every place in the program's files that speaks of the container's name is looked at; whatever else
has the same name counts as well, so that the answer "nothing reads it" is certain.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CodeType
from typing import NamedTuple

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.probes import class_source
from trueloop.doctor.model.findings import Location

_ADDS = frozenset("append extend insert appendleft extendleft add update setdefault".split())
_SHOWS = frozenset("print log info debug write set_postfix set_description".split())
_MAKERS = frozenset("list dict set deque defaultdict OrderedDict".split())
_FILES = 400


class Use(NamedTuple):
    """A place that speaks of a container: `adds`, `reads`, or neither (it is made, or its newest
    element is looked at)."""

    path: str
    node: ast.AST
    kind: str
    function: str


def adder(
    names: Iterable[tuple[str, bool]], paths: Iterable[str], codes: list[CodeType]
) -> Location | None:
    """The statement that adds to a container of which nothing reads more than the newest element;
    None where something does, or may do. Of several, the one that runs on the stack.

    Args:
        names: what it is bound to; True: an attribute.
        paths: the program's files.
        codes: what runs now, innermost first.
    """
    files = sorted(paths)
    if len(files) > _FILES:
        return None
    adds: list[Use] = []
    for (name, is_attribute), path in itertools.product(sorted(names), files):
        if name not in source_map.source_of(path).text:
            continue
        for use in _uses(path, name, is_attribute):
            if use.kind == "reads":
                return None
            if use.kind == "adds":
                adds.append(use)
    for code in codes:
        for use in adds:
            if use.path == code.co_filename and use.function == code.co_name:
                return class_source.place_of(use.path, use.node, use.function)
    first = next(iter(adds), None)
    return None if first is None else class_source.place_of(first.path, first.node, first.function)


def _uses(path: str, name: str, is_attribute: bool) -> Iterator[Use]:
    tree = source_map.source_of(path).tree
    if tree is None:
        yield Use(path, ast.Pass(), "reads", "")
        return
    parents = _parents(path)
    for node in ast.walk(tree):
        bound = not is_attribute and getattr(node, "id", None) == name
        if isinstance(node, (ast.Name, ast.Attribute)) and (
            bound or getattr(node, "attr", None) == name
        ):
            kind = _kind(node, parents, tree)
        elif isinstance(node, ast.alias) and node.asname and node.name == name:
            kind = "reads"
        elif isinstance(node, ast.arg) and node.arg == name and not is_attribute:
            kind = "" if _is_known(node, parents, tree) else "reads"
        elif isinstance(node, ast.Constant) and node.value == name:
            asked = isinstance(parents.get(node), (ast.Call, ast.Subscript, ast.List, ast.Tuple))
            kind = "reads" if asked else ""
        else:
            continue
        yield Use(path, _statement(node, parents), kind, _function(node, parents))


@lru_cache(maxsize=64)
def _parents(path: str) -> dict[ast.AST, ast.AST]:
    tree = source_map.source_of(path).tree
    assert tree is not None
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def _above(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while node in parents:
        node = parents[node]
        yield node


def _statement(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST:
    return next((each for each in _above(node, parents) if isinstance(each, ast.stmt)), node)


def _function(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    found = next((each for each in _above(node, parents) if isinstance(each, kinds)), None)
    return "<module>" if found is None else getattr(found, "name", "<lambda>")


def _kind(node: ast.Name | ast.Attribute, parents: dict[ast.AST, ast.AST], tree: ast.Module) -> str:
    """The use of a container where the program names it."""
    if isinstance(node.ctx, ast.Del):
        return "reads"  # it is looked after
    statement = _statement(node, parents)
    if isinstance(node.ctx, ast.Store):
        if isinstance(statement, ast.AugAssign):
            return "adds"
        whole = isinstance(statement, (ast.Assign, ast.AnnAssign)) and parents[node] is statement
        return "" if whole and _is_fresh(statement) else "reads"
    inner: ast.AST = node
    newest = False
    while isinstance(outer := parents[inner], ast.Subscript) and outer.value is inner:
        if isinstance(outer.ctx, ast.Store):
            return "adds" if isinstance(statement, ast.Assign) else "reads"
        if isinstance(outer.ctx, ast.Del):
            return "reads"
        newest = newest or ast.unparse(outer.slice) in ("-1", "0")
        inner = outer
    if isinstance(outer, ast.Attribute):
        call = parents[outer]
        if outer.attr in _ADDS and isinstance(call, ast.Call) and call.func is outer:
            return "adds" if _is_dropped(call, parents) else "reads"
    if newest:
        return ""
    if isinstance(outer, ast.Call) and inner in outer.args:
        if isinstance(outer.func, ast.Name) and outer.func.id == "len":
            return "" if _is_shown(outer, parents) else "reads"
        return "" if _hands_on(outer, inner, tree) else "reads"
    return "reads"


def _is_fresh(statement: ast.AST) -> bool:
    """It binds a new container, which nothing else has."""
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Call):
        return getattr(value.func, "id", getattr(value.func, "attr", "")) in _MAKERS
    kinds = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    return value is None or isinstance(value, kinds)


def _is_known(node: ast.arg, parents: dict[ast.AST, ast.AST], tree: ast.Module) -> bool:
    """An argument that only a default is bound to, or what has the same name where it is called."""
    function = parents[parents[node]]
    if not isinstance(function, ast.FunctionDef) or isinstance(parents[function], ast.ClassDef):
        return False
    calls = [
        each for each in ast.walk(tree)
        if isinstance(each, ast.Call)
        and getattr(each.func, "id", getattr(each.func, "attr", "")) == function.name
    ]  # fmt: skip
    given = [
        next((arg for arg in each.args if getattr(arg, "id", "") == node.arg), None)
        for each in calls
    ]
    if all(
        arg is not None and _hands_on(call, arg, tree)
        for call, arg in zip(calls, given, strict=True)
    ):
        return bool(calls)
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    position = names.index(node.arg) if node.arg in names else len(names)
    has_default = position >= len(names) - len(function.args.defaults)
    return has_default and all(
        len(each.args) <= position
        and not any(isinstance(arg, ast.Starred) for arg in each.args)
        and all(key.arg not in (node.arg, None) for key in each.keywords)
        for each in calls
    )


def _is_dropped(call: ast.Call, parents: dict[ast.AST, ast.AST]) -> bool:
    """The result of a method is only added to: `d.setdefault(k, []).append(x)`."""
    outer = parents[call]
    if isinstance(outer, ast.Attribute) and outer.attr in _ADDS:
        again = parents[outer]
        return isinstance(again, ast.Call) and _is_dropped(again, parents)
    return isinstance(outer, (ast.Expr, ast.Lambda))


def _is_shown(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """A number is printed and not compared: it does not decide what happens."""
    for each in _above(node, parents):
        if isinstance(each, (ast.Compare, ast.BoolOp, ast.IfExp)):
            return False
        if isinstance(each, ast.Call):
            name = getattr(each.func, "id", getattr(each.func, "attr", ""))
            return name in _SHOWS
    return False


def _hands_on(call: ast.Call, given: ast.AST, tree: ast.Module) -> bool:
    """It is given to a function of the same file by the same name: what that does with it is looked
    at there."""
    if not isinstance(call.func, ast.Name) or not isinstance(given, ast.Name):
        return False
    if any(isinstance(each, ast.Starred) for each in call.args):
        return False
    position = call.args.index(given)
    found = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == call.func.id
    ]  # fmt: skip
    if len(found) != 1 or found[0].decorator_list:
        return False
    names = [each.arg for each in (*found[0].args.posonlyargs, *found[0].args.args)]
    return position < len(names) and names[position] == given.id
