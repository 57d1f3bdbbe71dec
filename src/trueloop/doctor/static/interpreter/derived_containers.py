"""Objects of the user's classes that extend a container: `class History(dict)`, or a named tuple.

An object of the first kind is an `Instance` that has the container itself among its attributes,
under a name that no program can write. What its class does not define is asked of the container.
"""

from __future__ import annotations

import ast

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import (
    Class,
    DictValue,
    Instance,
    Sequence,
    Value,
)

_HELD = "<container>"
_TABLES = frozenset(
    {"builtins.dict", "collections.OrderedDict", "collections.UserDict", "collections.defaultdict"}
)
_LISTS = frozenset({"builtins.list", "collections.UserList"})


def container_for(m: Interpreter, made: Instance) -> None:
    """Give a new object the container that its class extends, still empty."""
    cls = made.cls
    bases = set(cls.dotted_bases())
    if bases.isdisjoint(_TABLES | _LISTS):
        return
    if any(isinstance(kind, Class) and _has_other_names(kind.node) for kind in cls.lineage()):
        return
    if bases & _LISTS:
        made.attributes[_HELD] = Sequence("list", [], turns=m.turns_begun)
    else:
        is_open = "collections.defaultdict" in bases
        made.attributes[_HELD] = DictValue({}, is_open, turns=m.turns_begun)


@once
def _has_other_names(node: ast.AST) -> bool:
    """Entries are attributes as well (`cfg.lr`): they change in ways that are not followed."""
    names = {each.name for each in walk(node) if isinstance(each, ast.FunctionDef)}
    names |= {each.attr for each in walk(node) if isinstance(each, ast.Attribute)}
    names |= {each.id for each in walk(node) if isinstance(each, ast.Name)}
    return not names.isdisjoint({"__dict__", "__getattr__", "__setattr__", "__getattribute__"})


def container_in(value: object) -> Sequence | DictValue | None:
    """The container that an object of the user's extends, or the fields of a named tuple; None for
    any other value."""
    if not isinstance(value, Instance):
        return None
    held = value.attributes.get(_HELD)
    if value.cls.fields and "typing.NamedTuple" in value.cls.dotted_bases():
        fields = [value.attributes.get(name) for name in value.cls.fields]
        known = [each for each in fields if each is not None]
        held = Sequence("tuple", known) if len(known) == len(fields) else None
    return held if isinstance(held, (Sequence, DictValue)) else None


def held_item(value: Instance, index: Value) -> Value | None:
    """The container to take an entry from: None where the class has its own way, or where
    nobody knows what is in it."""
    held = container_in(value)
    if held is None or value.cls.lookup("__getitem__") is not None:
        return None
    is_default = "collections.defaultdict" in value.cls.dotted_bases()
    if isinstance(held, DictValue) and held.open and not held.rest and not is_default:
        known = getattr(index, "value", None)
        return held if isinstance(known, str) and known in held.entries else None
    return held
