"""Parameters of the user's functions: each gets its argument, its default, or a guess."""

from __future__ import annotations

import ast

from trueloop.doctor.static.interpreter.inference import parameter
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.likely_modules import likely_module
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import (
    Constant,
    DictValue,
    Function,
    Scope,
    Sequence,
    Value,
)


def bind_parameters(
    m: Interpreter,
    function: Function,
    args: list[Value],
    kwargs: dict[str, Value],
    scope: Scope,
    rest: list[Value] | None,
) -> None:
    """Give parameters their arguments; what was not given and has no default is guessed."""
    beginning, m.beginning = m.beginning, False
    spec = function.node.args
    names, every, annotations = _names(spec)
    m.spend((len(every) + len(args)) >> 3, function.node)
    if len(args) > len(names) and spec.vararg is None:
        # Python raises a TypeError: it is not known which parameter each argument was meant for.
        m.expose(args, function.name, function.node)
        args = args[:1]
    given = dict(zip(names, args, strict=False))
    left = dict(kwargs)
    if left:
        given |= {name: left.pop(name) for name in every if name in left}
    defaults = dict(
        zip(names[len(names) - len(function.defaults) :], function.defaults, strict=False)
    )
    defaults.update(function.keyword_defaults)
    for name in every:
        if name in given:
            m.bind(name, given[name], scope)
        elif name in defaults and beginning:
            default = defaults[name]
            scope.variables[name] = _option(m, name, default, annotations.get(name), function)
            scope.assigned_at[name] = m.turns_begun
        elif name in defaults and rest is None:
            m.bind(name, defaults[name], scope)
        else:
            given_by = _of_nobody if beginning else parameter
            scope.variables[name] = given_by(m, name, annotations.get(name), function)
            scope.assigned_at[name] = m.turns_begun
    if spec.vararg is not None:
        extra = list(args[len(names) :])
        for each in rest or []:  # `*layers`, whose end is not known
            extra += each.values if isinstance(each, Sequence) else [each]
        scope.variables[spec.vararg.arg] = Sequence(
            "tuple", extra, rest is not None, turns=m.turns_begun
        )
    if spec.kwarg is not None:
        scope.variables[spec.kwarg.arg] = DictValue(
            left, rest is not None, list(rest or []), m.turns_begun
        )


def is_refused(
    function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> bool:
    """Python raises a TypeError for this call: it passes an argument that the function does not
    take, or one that it needs is missing. Only calls that the program writes itself count."""
    if not isinstance(node, ast.Call) or function.decorators or not _is_called_so(function, node):
        return False
    starred = any(isinstance(each, ast.Starred) for each in node.args)
    starred = starred or any(each.arg is None for each in node.keywords)
    if starred or len(node.keywords) != len(kwargs) or len(args) - len(node.args) not in (0, 1):
        return False
    return not takes(function, args, kwargs)


def takes(function: Function, args: list[Value], kwargs: dict[str, Value]) -> bool:
    """Python can bind these arguments to the function's parameters."""
    spec = function.node.args
    names, every, _ = _names(spec)
    if spec.vararg is None and len(args) > len(names):
        return False
    taken = set(names[: len(args)])
    if spec.kwarg is None and any(name not in every or name in taken for name in kwargs):
        return False
    needed = {*names[: len(names) - len(function.defaults)], *(every[len(names) :])}
    return needed <= taken | kwargs.keys() | function.keyword_defaults.keys()


def _is_called_so(function: Function, node: ast.Call) -> bool:
    """The call uses the function's own name, or the class name for a constructor. It does not go
    through `super(Base, self)`, which may mean a different constructor."""
    called, own = last_name(node.func), function.name.rpartition(".")[2]
    cls = function.owner.name if own == "__init__" and function.owner is not None else own
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    elsewhere = isinstance(owner, ast.Call) and bool(owner.args)
    return called in (own, cls) and not (elsewhere or isinstance(function.node, ast.Lambda))


@once
def _names(
    spec: ast.arguments,
) -> tuple[list[str], list[str], dict[str, ast.expr | None]]:
    """The parameters that may be given by position, all but those with stars, and their
    annotations."""
    names = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
    every = [*names, *(arg.arg for arg in spec.kwonlyargs)]
    return names, every, {arg.arg: arg.annotation for arg in (*spec.args, *spec.kwonlyargs)}


def _option(
    m: Interpreter, name: str, default: Value, annotation: ast.expr | None, function: Function
) -> Value:
    """A parameter with a default, of a function that nobody is seen to call: given, or not.

    A text keeps its default (it names one of several ways); a number may be any.
    """
    if not isinstance(default, Constant) or isinstance(default.value, (str, bytes)):
        return default
    if default.value is None and not m.policy.optional:
        return default
    return _of_nobody(m, name, annotation, function)


def _of_nobody(m: Interpreter, name: str, annotation: ast.expr | None, function: Function) -> Value:
    """An argument of a function that nobody is seen to call."""
    found = likely_module(m, name, annotation, function)
    return parameter(m, name, annotation, function) if found is None else found
