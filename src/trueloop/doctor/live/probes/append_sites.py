"""The statement that adds to a container of tensors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.probes import class_source
from trueloop.doctor.model.findings import Location

_ADDS = frozenset("append extend insert appendleft add setdefault update put push".split())
_CUT = frozenset("item detach tolist numpy data".split())
_ANY = "*."
"""Before an attribute: of whatever object."""
_SUBSCRIPT = re.compile(r"\[[^\[\]]*\]")


def place(holder: Any) -> Location | None:
    """Where a holder grows: in the current function, else where that calls the method which does
    it, else in the method itself, else in the one function that adds to an attribute of that
    name."""
    stack = tuple(each.f_code for each in user_frames.frames_of_user(holder.frame))
    if holder.code is not None:
        return _of_function(stack, holder.code, holder.spelled, holder.owner)
    return _place(stack, holder.spelled, holder.owner, holder.kind, holder.attribute)


def _of_function(
    stack: tuple[CodeType, ...], code: CodeType, spelled: str, function: str
) -> Location | None:
    """Where the program calls the function that adds to what it remembers, else that statement."""
    added = _first(_adders(_function(code), spelled), code)
    for each in stack if added is not None else ():
        calls = (
            node
            for node in _own(_function(each))
            if isinstance(node, ast.Call) and _same(node.func, function)
        )
        if (found := _first(calls, each)) is not None:
            return found
    return added


@lru_cache(maxsize=256)  # a holder that is not found is looked for after each search
def _place(
    stack: tuple[CodeType, ...], spelled: str, owner: str, kind: type | None, attribute: str
) -> Location | None:
    for code in stack:
        found = _first(_adders(_function(code), spelled), code)
        if found is not None:
            return found
    if kind is None:
        return None
    below = spelled[len(owner) :]
    methods: dict[str, Location] = {}
    for path, node in class_source.classes(kind):
        for each in node.body:
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for adder in _adders(each, f"self{below}"):
                    methods.setdefault(each.name, class_source.place_of(path, adder, each.name))
    for code in stack:
        found = _first(_calls(_function(code), owner, methods.keys()), code)
        if found is not None:
            return found
    if methods:
        return next(iter(methods.values()))
    elsewhere = [
        class_source.place_of(code.co_filename, adder, function.name)
        for code in {each.co_filename: each for each in stack}.values()
        for function in _functions(code.co_filename)
        for adder in _adders(function, _ANY + attribute)
    ]
    return elsewhere[0] if len(elsewhere) == 1 else None


def _first(nodes: Iterator[ast.AST], code: CodeType) -> Location | None:
    node = next(nodes, None)
    return None if node is None else class_source.place_of(code.co_filename, node, code.co_name)


def _function(code: CodeType) -> ast.AST | None:
    """The source of a code object: a function, or the file's own statements."""
    tree = source_map.source_of(code.co_filename).tree
    if tree is None or code.co_name == "<module>":
        return tree
    for node in _functions(code.co_filename):
        if node.name == code.co_name:
            lines = {node.lineno, *(each.lineno for each in node.decorator_list)}
            if code.co_firstlineno in lines:
                return node
    return None


def _functions(path: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = source_map.source_of(path).tree
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def _own(tree: ast.AST | None) -> Iterator[ast.AST]:
    """The nodes of a function, in order, without those of functions inside of it."""
    waiting = [] if tree is None else list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        yield node
        waiting = [*ast.iter_child_nodes(node), *waiting]


def _adders(tree: ast.AST | None, spelled: str) -> Iterator[ast.AST]:
    """The statements that add to what is spelled so."""
    for node in _own(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if (
                isinstance(function, ast.Attribute)
                and function.attr in _ADDS
                and _same(function.value, spelled)
                and not _is_cut(node.value.args)
            ):
                yield node
        elif isinstance(node, ast.AugAssign):
            if _same(node.target, spelled) and not _is_cut([node.value]):
                yield node
        elif isinstance(node, ast.Assign) and not _is_cut([node.value]):
            for target in node.targets:
                stores = isinstance(target, ast.Subscript) and _same(target.value, spelled)
                again = _same(target, spelled) and any(
                    _same(part, spelled) for part in ast.walk(node.value)
                )
                if stores or again:
                    yield node


def _calls(tree: ast.AST | None, owner: str, methods: Any) -> Iterator[ast.AST]:
    """The calls of an object's methods that are given something with a graph."""
    for node in _own(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in methods
            and _same(node.func.value, owner)
            and not _is_cut(_given_first(node))
        ):
            yield node


def _given_first(call: ast.Call) -> list[ast.expr]:
    """The first argument that is not a constant: `log.note("loss", loss)`."""
    values = [*call.args, *(each.value for each in call.keywords)]
    return [each for each in values if not isinstance(each, ast.Constant)][:1] or values[:1]


def _same(node: ast.AST, spelled: str) -> bool:
    """A subscript may be a variable in the one and its value in the other."""
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return False
    if spelled.startswith(_ANY):
        return isinstance(node, ast.Attribute) and node.attr == spelled.removeprefix(_ANY)
    text = ast.unparse(node)
    if text == spelled:
        return True
    computed = any(
        not isinstance(each.slice, ast.Constant)
        for each in ast.walk(node) if isinstance(each, ast.Subscript)
    )  # fmt: skip
    return computed and _SUBSCRIPT.sub("[]", text) == _SUBSCRIPT.sub("[]", spelled)


def _is_cut(values: list[ast.expr]) -> bool:
    """The program adds a number, or a tensor without its graph."""
    for value in values:
        for node in ast.walk(value):
            if isinstance(node, ast.Attribute) and node.attr in _CUT:
                return True
            function = node.func if isinstance(node, ast.Call) else None
            if isinstance(function, ast.Name) and function.id in ("float", "int", "len"):
                return True
    return bool(values) and all(isinstance(value, ast.Constant) for value in values)
