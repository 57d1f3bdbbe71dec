"""Attributes of modules: layers, values, and what takes the place of a layer."""

from __future__ import annotations

import ast
from typing import Any

from trueloop.doctor.model.events import AttributeSet, Made, Replaced
from trueloop.doctor.model.things import NOWHERE, Model
from trueloop.doctor.static.interpreter.attribute_uses import (
    attributes_read,
    hands_parameters_of,
)
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.user_objects import is_plain_helper
from trueloop.doctor.static.interpreter.values import (
    Class,
    DictValue,
    Function,
    Instance,
    LibraryName,
    OpaqueObject,
    Sequence,
    Unknown,
)
from trueloop.doctor.static.stubs.modes import write_mode


def write_to_model(m: Interpreter, owner: Model, name: str, value: object, node: ast.AST) -> None:
    """`module.name = value`."""
    if name == "training":
        write_mode(m, owner, value, node)
        return
    if name in ("train", "eval") and isinstance(value, Function):
        m.expose([owner], name, node)  # `bn.train = lambda mode: bn`: what switches it is not known
        return
    old = owner.children.get(name)
    if old is not None and isinstance(value, (Unknown, OpaqueObject)):
        value = _layer(m, name, value, node)
    if isinstance(value, Model):
        owner.children[name] = value
        value.parents.append(owner)
        owner.attributes.pop(name, None)
        if old is not None and old is not value:
            m.emit(Replaced, node, model=owner, attribute=name, old=old, new=value)
        elif old is None and not owner.complete and not _is_self(m, owner):
            # A layer of a model that is not understood: as likely as not it had one there.
            m.emit(Replaced, node, model=owner, attribute=name, old=None, new=value)
    else:
        if old is not None:
            del owner.children[name]
        owner.attributes[name] = value
    _emit_write(m, owner, name, value, node)


def _layer(m: Interpreter, name: str, value: Unknown | OpaqueObject, node: ast.AST) -> Model:
    """Something unknown that takes the place of a layer is one."""
    made = Model(
        name=name,
        kind=value.kind if isinstance(value, OpaqueObject) else "",
        made=m.place(node),
        attributes=value.attributes,
        training=None,
        complete=False,
    )
    m.emit(Made, node, thing=made)
    return made


def _emit_write(m: Interpreter, owner: Model, name: str, value: object, node: ast.AST) -> None:
    what, spelled, used, comma, helper = NOWHERE, "", None, False, ""
    held: dict[str, Any] = {}
    if isinstance(value, (Sequence, DictValue)):
        what = m.place(m.assigned) if m.assigned is not None else NOWHERE
        comma = _has_trailing_comma(m.assigned)
        spelled = _spelling_of_nn(m)
        used = _reads(owner.cls, name) if isinstance(owner.cls, Class) else None
    elif isinstance(value, Instance) and isinstance(owner.cls, Class):
        helper = value.cls.name if is_plain_helper(value.cls) else ""
        used, held = bool(helper) and _reads(owner.cls, name), value.attributes
    m.emit(
        AttributeSet, node, model=owner, attribute=name, value=value,
        what=what, nn=spelled, read=used, trailing_comma=comma, helper=helper,
        helper_attributes=held,
    )  # fmt: skip


def _has_trailing_comma(node: ast.expr | None) -> bool:
    """`value,`: a tuple of one that no brackets show."""
    if not isinstance(node, ast.Tuple) or len(node.elts) != 1:
        return False
    inner = node.elts[0]
    return (node.lineno, node.col_offset) == (inner.lineno, inner.col_offset)


def _spelling_of_nn(m: Interpreter) -> str:
    """How the current file writes `torch.nn`."""
    scope = m.namespaces.get(id(m.modules[-1]))
    names = scope.variables.items() if scope is not None else ()
    found = {value.name: name for name, value in names if isinstance(value, LibraryName)}
    if "torch.nn" in found:
        return found["torch.nn"]
    return f"{found['torch']}.nn" if "torch" in found else ""


def _reads(cls: Class, attribute: str) -> bool:
    """A method of a class, other than `__init__`, reads `self.attribute`, and none hands out the
    parameters of what it has."""
    found = False
    for kind in cls.lineage():
        for method in kind.namespace.values() if isinstance(kind, Class) else ():
            if not isinstance(method, Function) or method.name.endswith("__init__"):
                continue
            if method.name != "forward" and attribute in hands_parameters_of(method.node):
                return False
            found |= attribute in attributes_read(method.node)
    return found


def _is_self(m: Interpreter, owner: Model) -> bool:
    return owner.made.line > 0 and bool(m.functions) and m.functions[-1].endswith("__init__")
