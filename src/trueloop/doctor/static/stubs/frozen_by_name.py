"""Parameters that are frozen or not by their names: `p.requires_grad = "adapter" in name`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueloop.doctor.model.events import FlagsSet
from trueloop.doctor.model.things import Model, Tensor
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.values import (
    Constant,
    Scope,
    Sequence,
    Value,
    constant,
)
from trueloop.doctor.static.stubs.parameters import parametrized
from trueloop.doctor.static.stubs.tensors import has_weight
from trueloop.doctor.static.stubs.thawing import thaws_elsewhere

_OF_TEXTS = ("startswith", "endswith", "split")
_PLAIN = frozenset(
    "Sequential ModuleList ModuleDict Identity ReLU ReLU6 LeakyReLU GELU SiLU Mish ELU Tanh Sigmoid"
    " Hardswish Softmax LogSoftmax Softplus Flatten Unflatten Dropout Dropout1d Dropout2d Dropout3d"
    " MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d"
    " AdaptiveAvgPool2d AdaptiveMaxPool2d Upsample PixelShuffle ZeroPad2d".split()
)
"""Layers of torch's that have no parameters."""


class UnreadError(Exception):
    """A test or a statement that is not understood."""


def notice(m: Interpreter, node: ast.For | ast.AsyncFor, iterable: Value, scope: Scope) -> None:
    """A loop over `model.named_parameters()` is over: the parts that it has frozen whole."""
    target, model = node.target, _model_of(node, iterable)
    names = [each.id for each in getattr(target, "elts", []) if isinstance(each, ast.Name)]
    if model is None or len(names) != 2:
        return
    try:
        choice = FlagOfLeaf(node.body, names[0], names[1], scope)
        frozen, thawed = ([*_parts_with(flag, model, "", choice)] for flag in (False, True))
    except UnreadError:
        return
    for part in thawed if m.calls else ():  # by a function that may have frozen it before
        m.emit(FlagsSet, node, model=part, requires_grad=True, whole=True, by_name=True)
    later = thaws_elsewhere(m.modules[-1].tree, node) if frozen else False
    for part in frozen:
        m.emit(
            FlagsSet, node, model=part, requires_grad=False, whole=True, by_name=True,
            thawed_later=later,
        )  # fmt: skip


def _model_of(node: ast.For | ast.AsyncFor, iterable: Value) -> Model | None:
    function = getattr(node.iter, "func", None)
    if not isinstance(iterable, Sequence) or getattr(function, "attr", "") != "named_parameters":
        return None
    pair = iterable.values[0] if iterable.values else None
    leaf = pair.values[-1] if isinstance(pair, Sequence) and pair.values else None
    models = leaf.models if isinstance(leaf, Tensor) else ()
    return next(iter(models)) if len(models) == 1 else None


def _parts_with(flag: bool, model: Model, path: str, choice: FlagOfLeaf) -> Iterator[Model]:
    """The outermost parts of which every parameter gets a flag."""
    names = [*_names(model, path)]
    if names and None not in names and all(choice.of(str(name)) is flag for name in names):
        yield model
        return
    for name, child in model.children.items():
        yield from _parts_with(flag, child, f"{path}{name}.", choice)


def _names(model: Model, path: str) -> Iterator[str | None]:
    """The names of a module's parameters; None where some are not known."""
    kind = model.kind.rpartition(".")[2]
    if has_weight(model):
        for name in ("weight", "bias"):
            if name == "weight" or model.arguments.get("bias") is not False:
                yield f"{path}{_renamed(model, name)}"
    elif not model.complete or (model.cls is None and kind not in _PLAIN):
        yield None
    for name, value in model.attributes.items():
        if isinstance(value, Tensor) and value.is_parameter:
            yield f"{path}{name}"
    for name, child in model.children.items():
        yield from _names(child, f"{path}{name}.")


def _renamed(model: Model, name: str) -> str:
    """The name of a parameter, which `register_parametrization` changes."""
    own = parametrized(name)
    return f"{own}original" if any(each.startswith(own) for each in model.children) else name


class FlagOfLeaf:
    """The body of a loop over `named_parameters()`, as a function of a parameter's name."""

    def __init__(self, body: list[ast.stmt], name: str, leaf: str, scope: Scope) -> None:
        self._body, self._name, self._leaf, self._scope = body, name, leaf, scope
        self._values: dict[str, object] = {}

    def of(self, name: str) -> bool | None:
        """The flag that a parameter of this name gets; None where it stays as it was."""
        self._values = {self._name: name}
        flags: list[bool] = []
        self._run(self._body, flags)
        return flags[-1] if flags else None

    def _run(self, body: list[ast.stmt], flags: list[bool]) -> bool:
        """Go through statements; whether the turn is over."""
        for statement in body:
            if isinstance(statement, ast.If):
                branch = statement.body if self._value(statement.test) else statement.orelse
                if self._run(branch, flags):
                    return True
            elif isinstance(statement, ast.Continue):
                return True
            elif not isinstance(statement, ast.Pass):
                flags.append(bool(self._value(self._flag(statement))))
        return False

    def _flag(self, statement: ast.stmt) -> ast.expr:
        """The value of `p.requires_grad = ...` or `p.requires_grad_(...)`."""
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.Assign) and self._is_leafs(targets[0], "requires_grad"):
            return statement.value
        called = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(called, ast.Call) and self._is_leafs(called.func, "requires_grad_"):
            given = [*called.args, *(each.value for each in called.keywords)]
            return given[0] if given else ast.Constant(True)
        raise UnreadError

    def _is_leafs(self, node: ast.expr, name: str) -> bool:
        owner = node.value if isinstance(node, ast.Attribute) and node.attr == name else None
        return isinstance(owner, ast.Name) and owner.id == self._leaf

    def _value(self, node: ast.expr) -> object:
        """The value of a test or of a part of it."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._variable(node.id)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return tuple(self._value(each) for each in node.elts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self._value(node.operand)
        if isinstance(node, ast.BoolOp):
            several = all if isinstance(node.op, ast.And) else any
            return several([self._value(each) for each in node.values])
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Constant, ast.UnaryOp)):
            number = ast.literal_eval(node.slice)
            values = self._value(node.value)
            if isinstance(values, tuple) and -len(values) <= number < len(values):
                return values[number]
        if isinstance(node, ast.Call):
            return self._called(node)
        raise UnreadError

    def _variable(self, name: str) -> object:
        if name in self._values:
            return self._values[name]
        holder = self._scope.find(name)
        value = holder.variables.get(name) if holder is not None else None
        if isinstance(value, Sequence) and not value.open:
            parts = tuple(map(constant, value.values))
            if all(isinstance(each, str) for each in parts):
                return parts
        if isinstance(value, Constant) and isinstance(value.value, str):
            return value.value
        raise UnreadError

    def _compared(self, node: ast.Compare) -> bool:
        left, right = self._value(node.left), self._value(node.comparators[0])
        sign = node.ops[0]
        if isinstance(sign, (ast.Eq, ast.NotEq)):
            return bool((left == right) == isinstance(sign, ast.Eq))
        if isinstance(sign, (ast.In, ast.NotIn)) and isinstance(right, (str, tuple)):
            is_in = left in right if isinstance(right, tuple) else str(left) in right
            return is_in == isinstance(sign, ast.In)
        raise UnreadError

    def _called(self, node: ast.Call) -> object:
        given = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if isinstance(node.func, ast.Name) and node.func.id in ("any", "all"):
            if isinstance(given, ast.GeneratorExp):
                return (any if node.func.id == "any" else all)(self._each(given))
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _OF_TEXTS:
            text, part = self._value(node.func.value), self._value(given) if given else None
            if isinstance(text, str) and isinstance(part, str) and node.func.attr == "split":
                return tuple(text.split(part))
            parts = part if isinstance(part, tuple) else (part,)
            if isinstance(text, str) and all(isinstance(each, str) for each in parts):
                at_end = node.func.attr == "endswith"
                return text.endswith(parts) if at_end else text.startswith(parts)
        raise UnreadError

    def _each(self, node: ast.GeneratorExp) -> list[object]:
        """`part in name for part in ("head", "norm")`."""
        generator = node.generators[0]
        if len(node.generators) > 1 or generator.ifs or not isinstance(generator.target, ast.Name):
            raise UnreadError
        found: list[object] = []
        values = self._value(generator.iter)
        for each in values if isinstance(values, (tuple, str)) else ():
            self._values[generator.target.id] = each
            found.append(self._value(node.elt))
        return found
