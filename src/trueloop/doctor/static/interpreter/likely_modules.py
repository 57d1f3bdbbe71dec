"""The module that a function without a known caller is meant for, where its text names the class.

An annotation does (`def train(net: Denoiser)`), and so does `assert isinstance(net, Denoiser)`, or
a method that only one class of the file has (`self.net.sample_images(9)`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import Model
from trueloop.doctor.static.interpreter.imports import value_in
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import nodes_of, once
from trueloop.doctor.static.interpreter.values import Class, Function, Scope, Value

_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_OF_ANY_MODULE = frozenset(
    "parameters named_parameters modules named_modules children named_children buffers"
    " named_buffers state_dict load_state_dict train eval training to cuda cpu half float double"
    " bfloat16 type zero_grad apply forward requires_grad_ register_buffer register_parameter"
    " register_module add_module register_forward_hook register_forward_pre_hook"
    " register_full_backward_hook share_memory extra_repr compile get_submodule get_parameter"
    " module __class__ __name__ __dict__".split()
)


def likely_module(
    m: Interpreter, name: str, annotation: ast.expr | None, function: Function
) -> Model | None:
    """A module as its `__init__` leaves it, where that has defaults with these; in which mode is
    not known. None where the text does not name the class."""
    if isinstance(function.node, ast.Lambda) or not _is_used_as_one(name, function):
        return None
    cls = _class_of(m, name, annotation, function)
    if cls is None or not any(each.startswith("torch.nn.") for each in cls.dotted_bases()):
        return None
    watch, m.watch = m.watch, _hears_nothing
    try:
        made = m.call_value(cls, [], node=cls.node)
    finally:
        m.watch = watch
    if not isinstance(made, Model):
        return None
    made.name = name
    for member in made.family():
        member.training = None
    return made


def _is_used_as_one(name: str, function: Function) -> bool:
    """Something of the file calls it, takes its parameters, or switches its mode."""
    uses = function.module.survey.uses
    names = (name, *_kept(function.node).get(name, ()))
    return any(not _USES.isdisjoint(uses[each]) for each in names if each in uses)


_USES = frozenset({"()", "parameters", "named_parameters", "train", "eval", "state_dict"})


def _hears_nothing(event: object) -> None:
    """In place of the rules: making it is not a part of the function."""


def _class_of(
    m: Interpreter, name: str, annotation: ast.expr | None, function: Function
) -> Class | None:
    assert not isinstance(function.node, ast.Lambda)
    scope = function.scope.top()
    for written in (annotation, _asserted(function.node, name)):
        named = _without_none(written)
        found = _user_class(m, scope, named) if named else None
        if found is not None:
            return found
    if annotation is not None:
        return None
    around = function.owner.node if function.owner is not None else function.node
    asked = _asked_of(function.node, around, name) - _OF_ANY_MODULE
    only = _only_class_with(function.module.tree, frozenset(asked)) if asked else ""
    return _user_class(m, scope, only) if only else None


def _without_none(written: ast.expr | None) -> str:
    """The name in `Net`, `"Net"`, `Net | None` and `Optional[Net]`."""
    if isinstance(written, ast.BinOp) and getattr(written.right, "value", written) is None:
        written = written.left
    elif isinstance(written, ast.Subscript) and last_name(written.value) == "Optional":
        written = written.slice
    if isinstance(written, ast.Constant):
        return written.value if isinstance(written.value, str) else ""
    return written.id if isinstance(written, ast.Name) else ""


def _user_class(m: Interpreter, scope: Scope, name: str) -> Class | None:
    """None for one that others of its file, or of this one, are derived from."""
    found: Value | None = value_in(m, scope, name)
    if not isinstance(found, Class):
        return None
    files = (found.module.tree, scope.module.tree)
    derived = any(found.name in bases for tree in files for *_, bases in _classes(tree).values())
    return found if not derived else None


def _asserted(node: _Definition, name: str) -> ast.expr | None:
    """`assert isinstance(net, Denoiser)` at the beginning of a function."""
    for statement in node.body:
        test = statement.test if isinstance(statement, ast.Assert) else None
        if isinstance(test, ast.Call) and last_name(test.func) == "isinstance":
            given = test.args
            if len(given) == 2 and isinstance(given[0], ast.Name) and given[0].id == name:
                return given[1]
    return None


def _asked_of(node: _Definition, around: ast.AST, name: str) -> set[str]:
    """The attributes that are read of a parameter, or of the attribute that it is put into."""
    kept = _kept(node).get(name)
    plain = {each.attr for each in _reads(node) if getattr(each.value, "id", "") == name}
    if not kept:
        return plain
    return plain | {
        each.attr
        for each in _reads(around)
        if isinstance(each.value, ast.Attribute)
        and isinstance(each.value.value, ast.Name)
        and each.value.attr in kept
    }


def _reads(node: ast.AST) -> Iterator[ast.Attribute]:
    return (each for each in walk(node) if isinstance(each, ast.Attribute))


@once
def _kept(node: ast.AST) -> dict[str, list[str]]:
    """Variable of a function -> the attributes that it is put into."""
    found: dict[str, list[str]] = {}
    for each in [part for part in walk(node) if isinstance(part, ast.Assign)]:
        for target in each.targets:
            for one, value in _pairs(target, each.value):
                if isinstance(one, ast.Attribute) and isinstance(value, ast.Name):
                    found.setdefault(value.id, []).append(one.attr)
    return found


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """`a, b = c, d` is two assignments."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _only_class_with(tree: ast.Module, asked: frozenset[str]) -> str:
    """The one class of a file that defines a method which is asked for, and has all the rest; empty
    where several do."""
    classes = _classes(tree)
    found = [name for name, (methods, _, _) in classes.items() if methods & asked]
    if len(found) != 1:
        return ""
    methods, attributes, _ = classes[found[0]]
    return found[0] if asked <= methods | attributes else ""


@once
def _classes(tree: ast.Module) -> dict[str, tuple[set[str], set[str], set[str]]]:
    """The methods, attributes and bases of each class of a file."""
    found: dict[str, tuple[set[str], set[str], set[str]]] = {}
    for cls in nodes_of(tree, ast.ClassDef):
        methods = {each.name for each in cls.body if isinstance(each, _Definition)}
        attributes = {
            each.attr
            for each in walk(cls)
            if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
        }
        found[cls.name] = methods, attributes, set(map(last_name, cls.bases))
    return found
