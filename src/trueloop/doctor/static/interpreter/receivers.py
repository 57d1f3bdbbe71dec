"""Where a run begins that is not the program itself: a file's names, and an object of a class."""

from __future__ import annotations

import ast

from trueloop.doctor.model.things import Thing
from trueloop.doctor.static.interpreter.calls import enter
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.pending import define
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.user_objects import new_object
from trueloop.doctor.static.interpreter.values import (
    Class,
    Constant,
    Function,
    Instance,
    Module,
    Scope,
    Value,
)


def definitions(m: Interpreter, module: Module) -> Scope:
    """The names of the file without what its top level does."""
    scope = m.namespaces[id(module)] = Scope(module)
    scope.variables["__name__"] = Constant(module.name or "<module>")
    watch, m.watch = m.watch, lambda event: None
    try:
        define(m, scope, only_names=True)
    finally:
        m.watch = watch
    return scope


def receiver(m: Interpreter, cls: Class, definition: ast.AST) -> Value:
    """An object of a class as its `__init__` leaves it."""
    made = new_object(m, cls, cls.node)
    if isinstance(made, Instance):
        made.key = "self"
    elif isinstance(made, Thing):
        made.name = "self"
        if getattr(made, "training", None):
            made.training = None  # type: ignore[attr-defined]
    initialise = cls.lookup("__init__")
    if isinstance(initialise, Function) and initialise.node is not definition:
        m.beginning = True
        enter(m, initialise, [made], {}, cls.node)
        if isinstance(made, (Instance, Thing)):
            _forget_what_comes_later(made, cls)
    return made


def _forget_what_comes_later(made: Instance | Thing, cls: Class) -> None:
    """An attribute that is None at first and set by a different method (`self.model = None`, until
    `build()`), or by a subclass if its methods are called here, is not known when a third one
    begins."""
    later = _set_after_init(cls.node)
    for name, value in [*made.attributes.items()]:
        if name in later and isinstance(value, Constant) and value.value is None:
            del made.attributes[name]


@once
def _set_after_init(node: ast.ClassDef) -> frozenset[str]:
    """The attributes that methods other than `__init__` assign to their object, or of which they
    take an attribute."""
    return frozenset(
        target.attr
        for method in node.body
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and method.name != "__init__"
        for each in ast.walk(method)
        if isinstance(each, ast.Assign | ast.Attribute)
        for target in (each.targets if isinstance(each, ast.Assign) else [each.value])
        if isinstance(target, ast.Attribute) and getattr(target.value, "id", "") == "self"
    )
