"""The values of a function's variables, as the source has them: the one that is assigned, or that a
call passes."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import NamedTuple


class Passing(NamedTuple):
    """An argument as one call passes it: the expression, or what is spread (`**kwargs`)."""

    value: ast.expr | None
    spread: tuple[str, ...]


def names_of(args: ast.arguments) -> list[str]:
    """The parameters of a function, without `*args` and `**kwargs`."""
    return [each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs)]


def stores(definition: ast.AST) -> dict[str, list[ast.expr | None]]:
    """The variables that a function or a file assigns to, and what: None for a part of what is not
    a call, and for what a loop gives it."""
    found: dict[str, list[ast.expr | None]] = defaultdict(list)
    body = getattr(definition, "body", None)
    waiting: list[ast.AST] = [*body] if isinstance(body, list) else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id].append(node.value)
                else:
                    waiting += _in_parts(target, node.value, found)
            waiting.append(node.value)
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found[node.id].append(None)
        waiting += ast.iter_child_nodes(node)
    return found


def _in_parts(
    target: ast.expr, value: ast.expr, found: dict[str, list[ast.expr | None]]
) -> list[ast.AST]:
    """Note `a, b = f(x)` as `f(x)[0]` and `f(x)[1]`, and `a, b = 0, 1` one by one; what is left of
    other targets."""
    names = target.elts if isinstance(target, ast.Tuple) else []
    values: list[ast.expr] = []
    if isinstance(value, ast.Tuple) and len(value.elts) == len(names):
        values = value.elts
    elif isinstance(value, ast.Call):
        parts = (ast.Subscript(value, ast.Constant(at), ast.Load()) for at in range(len(names)))
        values = [ast.copy_location(each, value) for each in parts]
    simple = [each for each in names if isinstance(each, ast.Name)]
    if not values or len(simple) != len(names) or any(isinstance(v, ast.Starred) for v in values):
        return [target]
    for name, given in zip(simple, values, strict=True):
        found[name.id].append(given)
    return []


def default_of(args: ast.arguments, name: str) -> ast.expr | None:
    """The value of a parameter where no call passes one."""
    names = [each.arg for each in (*args.posonlyargs, *args.args)]
    defaults = dict(zip(reversed(names), reversed(args.defaults), strict=False))
    own = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    defaults |= {each.arg: given for each, given in own if given is not None}
    return defaults.get(name)


def given(
    args: ast.arguments, call: ast.Call, parameter: str, *, constructs: bool = False
) -> Passing:
    """The argument that a call passes for a parameter of the function that it calls."""
    found = of_keyword(call, parameter)
    names = [each.arg for each in (*args.posonlyargs, *args.args)]
    if found.value is None and parameter in names:
        bound = names[0] in ("self", "cls") and (constructs or isinstance(call.func, ast.Attribute))
        position = names.index(parameter) - bound
        if 0 <= position < len(call.args):
            return Passing(call.args[position], ())
    return found


def of_keyword(call: ast.Call, name: str) -> Passing:
    """The argument that a call passes by name."""
    value = next((each.value for each in call.keywords if each.arg == name), None)
    spread = [each.value for each in call.keywords if each.arg is None]
    return Passing(value, tuple(each.id for each in spread if isinstance(each, ast.Name)))
