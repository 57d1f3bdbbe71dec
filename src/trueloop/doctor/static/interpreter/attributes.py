"""Attributes and items: reading and writing them, unpacking."""

from __future__ import annotations

import ast
from typing import Any

from trueloop.doctor.model.arithmetic import is_hashable
from trueloop.doctor.model.events import (
    GradRead,
    Replaced,
    TensorRetained,
)
from trueloop.doctor.model.known_values import loop_of
from trueloop.doctor.model.things import (
    NOWHERE,
    Dataset,
    Loader,
    Loop,
    Model,
    Optimizer,
    Sampler,
    Scheduler,
    StateDict,
    Tensor,
    Thing,
)
from trueloop.doctor.model.value_events import TransformSet
from trueloop.doctor.static.interpreter import imports
from trueloop.doctor.static.interpreter.calls import enter, has_decorator
from trueloop.doctor.static.interpreter.canonical_names import canonical
from trueloop.doctor.static.interpreter.derived_containers import container_in, held_item
from trueloop.doctor.static.interpreter.emptied_holders import is_let_go
from trueloop.doctor.static.interpreter.inference import guess, is_no_tensor
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.keys import put_in_turn
from trueloop.doctor.static.interpreter.model_attributes import write_to_model
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, find_method
from trueloop.doctor.static.interpreter.syntax import written
from trueloop.doctor.static.interpreter.values import (
    KEY,
    Class,
    Constant,
    DictValue,
    Function,
    Instance,
    LibraryMethod,
    LibraryName,
    Method,
    Namespace,
    OpaqueObject,
    Scope,
    Sequence,
    Super,
    Unknown,
    Value,
    constant,
    kept,
    tensors_behind,
)
from trueloop.doctor.static.stubs.containers import item_in
from trueloop.doctor.static.stubs.manual_updates import GRADIENT, set_gradient
from trueloop.doctor.static.stubs.modes import SWITCHES, may_be, mode_of
from trueloop.doctor.static.stubs.optimizers import (
    holder_of,
    param_groups,
    set_groups,
    set_in_group,
)
from trueloop.doctor.static.stubs.tensor_shapes import indexed
from trueloop.doctor.static.stubs.tensors import (
    attribute_of,
    element,
    has_weight,
    parameter_of,
    set_attribute,
    set_element,
    take,
)
from trueloop.doctor.static.stubs.whole_models import as_part


def read(m: Interpreter, value: Value, name: str, node: ast.AST) -> Value:
    """`value.name`."""
    if isinstance(value, LibraryName):
        if len(value.name) > KEY:
            return m.unknown(node, (value,), key=f"{value.name}.{name}")
        return LibraryName(canonical(f"{value.name}.{name}"))
    if isinstance(value, Namespace):
        return _of_namespace(m, value, name)
    if isinstance(value, (Instance, Thing)):
        return _of_object(m, value, name, node)
    if isinstance(value, Class) and name != "__name__":
        if (found := value.lookup(name)) is None and find_method(value, name) is not None:
            return LibraryMethod(value, name)
        return found if found is not None else Unknown(f"{value.name}.{name}")
    if isinstance(value, OpaqueObject):
        return _of_foreign(m, value, name)
    if isinstance(value, Unknown):
        if name in GRADIENT:
            m.emit(GradRead, node, target=value, **m.modules[-1].survey.reading_of(node))
        return _of_unknown(m, value, name)
    if isinstance(value, Super):
        return _of_super(value, name)
    if isinstance(value, Sequence) and name in ("values", "indices") and len(value.values) == 2:
        parts = [each for each in value.values if isinstance(each, Tensor)]
        if value.kind == "tuple" and len(parts) == 2:
            return parts[name == "indices"]  # `x.max(dim=1).indices`
    if isinstance(value, (Function, Class)) and name == "__name__":
        return Constant(value.name)
    return LibraryMethod(value, name)


def _of_super(value: Super, name: str) -> Value:
    """`super().name`: the user's own method above, or the library's."""
    cls = getattr(value.receiver, "cls", None)
    lineage = cls.lineage() if isinstance(cls, Class) else ()
    if value.owner in lineage:
        lineage = lineage[lineage.index(value.owner) + 1 :]
    for kind in lineage:
        found = kind.namespace.get(name) if isinstance(kind, Class) else None
        if isinstance(found, Function):
            return Method(value.receiver, found)
    if (held := container_in(value.receiver)) is not None and find_method(held, name) is not None:
        return LibraryMethod(held, name)
    known = (Scheduler, Optimizer, Sampler, Model)
    mine = isinstance(value.receiver, known) or find_method(value.receiver, name) is not None
    if name == "__init__" and not mine:
        return LibraryName("object.__init__")
    if isinstance(value.receiver, Thing) or mine:
        return LibraryMethod(value.receiver, name)
    return LibraryName(f"object.{name}")


def _of_namespace(m: Interpreter, value: Namespace, name: str) -> Value:
    found = imports.value_in(m, value.scope, name)
    if found is not None:
        return found
    module = value.scope.module
    return imports.member(m, module.name, name, module)


def _of_object(m: Interpreter, value: Instance | Thing, name: str, node: ast.AST) -> Value:
    if name in value.attributes:
        return value.attributes[name]
    if isinstance(value, Model):
        if name in value.children:
            return value.children[name]
        if name == "training":
            return mode_of(m, value, node)
        if name in ("module", "_orig_mod") and value.wraps is not None:
            return value.wraps
        if name in ("weight", "bias") and has_weight(value):
            return parameter_of(m, value, name, node)
    if isinstance(value.cls, Class):
        found = value.cls.lookup(name)
        if name == "forward" and isinstance(value, Model) and isinstance(found, Function):
            return LibraryMethod(value, name)
        if name == "step" and isinstance(value, Optimizer) and isinstance(found, Function):
            return LibraryMethod(value, name)
        if found is not None:
            if isinstance(value, Scheduler) and name == "get_lr" and value not in m.receivers:
                value.read_by_hand = True
            return _bound(m, value, found, name, node)
        if name == "__class__":
            return value.cls
        if name == "__dict__" and isinstance(value, Instance):
            return LibraryMethod(value, name)
        if (held := container_in(value)) is not None and find_method(held, name) is not None:
            return LibraryMethod(held, name)
    if isinstance(value, Thing):
        if isinstance(value, Tensor):
            return attribute_of(m, value, name, node)
        if name == "param_groups" and isinstance(value, Optimizer):
            return param_groups(value)
        if name == "module" and isinstance(value, Optimizer):
            return value  # of `nn.DataParallel(optimizer)`
        if find_method(value, name) is not None:
            return LibraryMethod(value, name)
        if isinstance(value, Model) and value.wrapper in _PASSES_ON and value.wraps is not None:
            return read(m, value.wraps, name, node)
        if isinstance(value, Loader) and name == "dataset" and value.dataset is not None:
            return value.dataset
        if isinstance(value, Dataset) and name == "dataset" and value.parent is not None:
            return value.parent
        if isinstance(value, Scheduler) and name == "optimizer" and value.optimizer is not None:
            return value.optimizer
        if _is_called(node, m, name):
            return LibraryMethod(value, name)
    elif find_method(value, name) is not None:
        return LibraryMethod(value, name)
    owner = value.key if isinstance(value, Instance) else m.key(value)
    # Not remembered as set: it is the same unknown each time, and a thing once it was guessed.
    # What is done to a part of a holder that counts as an optimizer may be a step of it.
    is_holder = isinstance(value, Optimizer) and name not in ("state", "defaults")
    of = (value,) if is_holder else ()
    found = guess(m, name, Unknown(f"{owner}.{name}", of), m.modules[-1])
    value.attributes[name] = found
    return found


_PASSES_ON = ("compile", "fsdp")
"""Wrappers that take what they do not have from the module inside."""


def _is_called(node: ast.AST, m: Interpreter, name: str) -> bool:
    return "()" in m.modules[-1].survey.uses.get(name, ())


def _bound(m: Interpreter, owner: Any, found: Value, name: str, node: ast.AST) -> Value:
    """A member of the class, as its object sees it."""
    if not isinstance(found, Function):
        return found
    if has_decorator(found, "property", "cached_property"):
        value = enter(m, found, [owner], {}, node)
        if isinstance(value, Constant) and value.value is None:
            name = found.name.rpartition(".")[2]  # a thing that it does not have yet is set later
            guessed = guess(m, name, Unknown(f"{m.key(owner)}.{name}"), m.modules[-1])
            if isinstance(guessed, Thing):
                value = owner.attributes[name] = guessed
        if isinstance(value, Unknown):  # the same each time, and a thing once it was guessed
            value = value.attributes.setdefault(f"<{name}>", guess(m, name, value, m.modules[-1]))
        return value
    if has_decorator(found, "staticmethod"):
        return found
    if has_decorator(found, "classmethod"):
        return Method(owner.cls, found)
    return Method(owner, found)


def _of_foreign(m: Interpreter, value: OpaqueObject, name: str) -> Value:
    found = value.attributes.get(name)
    return found if found is not None else LibraryMethod(value, name)


def _of_unknown(m: Interpreter, value: Unknown, name: str) -> Value:
    found = value.attributes.get(name)
    is_setting = name in SWITCHES and not may_be(value)  # `args.train.steps`
    if found is None and find_method(value, name) is not None and not is_setting:
        return LibraryMethod(value, name)
    if found is None:
        cut = name == "data" and any(each.forwards for each in tensors_behind([value]))
        of = () if cut else (value,)  # `.data` leaves the graph behind
        fresh = Unknown(f"{value.key}.{name}", of, loop_variant=value.loop_variant)
        fresh.shape = value.shape[::-1] if name == "T" and value.shape else None
        # Of a batch, an `.image` is not a module; of a trainer, an `.optimizer` is an optimizer.
        found = value.attributes[name] = guess(m, name, fresh, m.modules[-1])
    return found


def write(m: Interpreter, owner: Any, name: str, value: Any, node: ast.AST) -> None:
    """`owner.name = value`."""
    m.history.write(changed=getattr(owner, "born", 0))
    if isinstance(value, (Unknown, OpaqueObject)):
        value = guess(m, name, value, m.modules[-1])
    elif isinstance(value, Tensor) and is_no_tensor(name, value, m.modules[-1]):
        value = guess(m, name, m.unknown(node, (value,)), m.modules[-1])
    elif isinstance(value, Thing) and not value.name:
        value.name = f"self.{name}" if isinstance(owner, Instance) else name
    if isinstance(owner, Tensor):
        set_attribute(m, owner, name, value, node)
    elif isinstance(owner, Model):
        write_to_model(m, owner, name, as_part(m, name, value, node), node)
    elif isinstance(owner, Optimizer) and name == "param_groups":
        set_groups(m, owner, value, node)
    elif isinstance(owner, (Thing, Instance, OpaqueObject, Unknown)):
        if name in owner.attributes and _is_empty(value):
            m.history.empty()
        owner.attributes[name] = value
        if isinstance(owner, Unknown):
            set_gradient(m, None, name, value, node)
            if isinstance(constant(value), str):
                m.reach.override(owner.key, m.guards)
        if isinstance(owner, Sampler) and name == "epoch":
            owner.epoch_set |= not m.functions[-1].endswith("__init__")
        elif isinstance(owner, Dataset) and name == "transform":
            _emit_transform(m, owner, value, node)
    elif isinstance(owner, Class):
        owner.namespace[name] = value
    elif isinstance(owner, Namespace):
        owner.scope.variables[name] = value


def _emit_transform(m: Interpreter, dataset: Dataset, value: Value, target: ast.AST) -> None:
    """`part.dataset.transform = value`."""
    whole = target.value if isinstance(target, ast.Attribute) else None
    if isinstance(whole, ast.Attribute) and whole.attr == "dataset":
        m.emit(TransformSet, target, dataset=dataset, part=written(whole.value), value=value)


def item_of(m: Interpreter, value: Any, index: Any, node: ast.AST) -> Value:
    """`value[index]`."""
    if isinstance(value, Instance) and (held := held_item(value, index)) is not None:
        missing = value.cls.lookup("__missing__")
        is_there = not isinstance(held, DictValue) or constant(index) in held.entries
        if isinstance(missing, Function) and not is_there:
            return enter(m, missing, [value, index], {}, node)
        value = held
    if isinstance(value, Tensor):
        return element(m, value, index, node)
    if isinstance(index, Constant):
        if isinstance(value, Sequence):
            return _of_items(m, value, index.value, node)
        if (
            isinstance(value, DictValue)
            and is_hashable(index.value)
            and index.value in value.entries
        ):
            found = value.entries[index.value]
            if isinstance(found, Thing) and not found.name:
                found.name = str(index.value)
            return found
        if isinstance(value, Constant) and isinstance(value.value, (str, tuple)):
            try:
                return Constant(value.value[index.value])
            except (TypeError, IndexError, KeyError):
                return m.unknown(node, (value,))
    inside = isinstance(value, Model) and isinstance(index, Constant)
    if inside and (layer := item_in(value, index.value)) is not None:
        return layer
    if isinstance(value, (Unknown, OpaqueObject)):
        name = f"[{m.key(index)}]"
        if name in value.attributes:
            return value.attributes[name]
        of = (value, index) if isinstance(value, Unknown) else (value,)
        fresh = Unknown(f"{m.key(value)}{name}", of, loop_variant=bool(loop_of(index)))
        fresh.number = bool(getattr(value, "number", False))
        fresh.shape = indexed(getattr(value, "shape", None), index)
        if not fresh.loop_variant:
            value.attributes[name] = fresh  # a name that is given to it says what it may be
        if not isinstance(constant(index), str):
            take(m, value, index, fresh, node)
        return fresh
    if isinstance(value, LibraryName):
        known = m.environment.variables.get(m.key(index)) if value.name == "os.environ" else None
        if known is not None:
            return known
        return m.unknown(node, (value, index), key=f"{value.name}[{m.key(index)}]")
    method = find_method(value, "__getitem__")
    if method is not None:
        return method(LibraryCall(m, node, "__getitem__", [index], receiver=value))
    return _of_user(m, value, index, node)


def _of_user(m: Interpreter, value: Any, index: Any, node: ast.AST) -> Value:
    """`__getitem__` of the user's own class."""
    cls = getattr(value, "cls", None)
    if isinstance(cls, Class):
        found = cls.lookup("__getitem__")
        if isinstance(found, Function):
            return enter(m, found, [value, index], {}, node)
    return m.unknown(node, (value, index))


def _of_items(m: Interpreter, value: Sequence, index: object, node: ast.AST) -> Value:
    if isinstance(index, slice):
        try:
            part = Sequence(value.kind, value.values[index], value.open, turns=value.turns)
            if value.length != len(value.values):
                known = value.length
                part.total = None if known is None else len(range(*index.indices(known)))
                part.uncounted = known is None
            return part
        except (TypeError, ValueError):
            return value
    if isinstance(index, int) and -len(value.values) <= index < len(value.values):
        return value.values[index]
    if isinstance(index, int) and value.open and value.values and holder_of(value.values[-1]):
        return value.values[-1]  # `optimizer.param_groups[1]`
    return m.unknown(node, (value,))


def set_item(
    m: Interpreter, owner: Any, index: Any, value: Any, node: ast.Subscript, *, afresh: bool
) -> None:
    """`owner[index] = value`; `afresh`: the new value does not contain the old one."""
    if (held := container_in(owner)) is not None and owner.cls.lookup("__setitem__") is None:
        owner = held
    m.history.write(owner)
    if isinstance(owner, DictValue):
        known = len(owner.entries)
        if isinstance(index, Constant) and is_hashable(index.value) and not index.loop_variant:
            set_in_group(m, owner, index.value, value, node)
            owner.put(index.value, kept(value, index.value))
            if afresh and m.turns:
                owner.assigned_at[index.value] = m.turns_begun
        else:
            put_in_turn(owner, index, value)
            _store(m, owner, index, value, node)
        if len(owner.entries) != known:
            m.history.extended.append(id(owner))
    elif isinstance(owner, Sequence):
        position = index.value if isinstance(index, Constant) else None
        if isinstance(position, int) and -len(owner.values) <= position < len(owner.values):
            owner.values[position] = value
        else:
            owner.open = True
            _store(m, owner, index, value, node)
    elif isinstance(owner, (Unknown, OpaqueObject)):
        owner.attributes[f"[{m.key(index)}]"] = value
    elif isinstance(owner, LibraryName) and owner.name == "os.environ":
        m.environment.set(m.key(index), value, guarded=bool(m.guards))
    elif isinstance(owner, Tensor):
        set_element(m, owner, value, node)
    elif isinstance(owner, StateDict) and isinstance(value, (Tensor, Unknown)):
        owner.edited = True  # `state[name] = tensor.clone()`
    elif isinstance(owner, Model):
        old = item_of(m, owner, index, node)
        key = str(index.value) if isinstance(index, Constant) else m.key(index)
        if isinstance(value, Model):
            owner.children[key] = value
            if isinstance(old, Model):
                m.emit(Replaced, node, model=owner, attribute=key, old=old, new=value)


def set_in_wholes(
    m: Interpreter, owner: Any, target: ast.Subscript, value: Any, scope: Scope
) -> None:
    """`context[i][0] = state` writes to `context`, of which `context[i]` is a part."""
    part = target.value
    while isinstance(owner, Tensor) and isinstance(part, ast.Subscript):
        part = part.value
        owner = m.evaluate(part, scope)
        if isinstance(owner, Tensor):
            set_element(m, owner, value, target)


def _within_turn(m: Interpreter, loop: object) -> bool:
    """A loop begins again in each turn of the batch loop around it."""
    inner: list[Loop] = []
    for turn in reversed(m.turns):
        if turn.loop.kind == "batches":
            break
        inner.append(turn.loop)
    return loop in inner


def _store(
    m: Interpreter, owner: Sequence | DictValue, index: object, value: object, node: ast.Subscript
) -> None:
    if isinstance(value, Tensor) and value.graph and m.predates_turn(owner.turns):
        # Another place in each turn, or the same ones again: only the first makes it grow.
        grows = (
            isinstance(index, Constant)
            and index.loop_variant
            and not _within_turn(m, index.loop_variant)
        )
        m.emit(
            TensorRetained, node, tensor=value, how="store", holder=written(node.value),
            container=owner if grows else None,
            what=m.place(m.assigned) if m.assigned is not None else NOWHERE,
            let_go=is_let_go(m, node, node.value),
        )  # fmt: skip


def _is_empty(value: Value) -> bool:
    """A new list, dict or count."""
    if isinstance(value, Sequence):
        return not value.values
    if isinstance(value, DictValue):
        return not (value.entries or value.rest)
    return isinstance(value, Constant) and value.value == 0 and value.value is not False
