"""Parameters that are frozen or not by whose they are: `p.requires_grad = id(p) in wanted`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueloop.doctor.model.events import FlagsSet
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import Model, Tensor
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.passed_arguments import stores_in
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import Parameters, Scope, Sequence, Unknown
from trueloop.doctor.static.stubs.frozen_by_name import FlagOfLeaf, UnreadError
from trueloop.doctor.static.stubs.thawing import thaws_elsewhere

_MOST = 6
"""Parts that are gone through one by one."""
_COUNTS = ("len", "sum", "list", "sorted", "print")
_LEAVES = ("weight", "bias")
_COMPREHENSIONS = (ast.SetComp, ast.ListComp, ast.GeneratorExp)


def notice(
    m: Interpreter, node: ast.For | ast.AsyncFor, iterable: Parameters, scope: Scope
) -> None:
    """A loop over `model.parameters()` is over: the parts that it has frozen whole."""
    function = getattr(node.iter, "func", None)
    if getattr(function, "attr", "") != "parameters":
        return
    if len(iterable.models) != 1 or iterable.part or not isinstance(node.target, ast.Name):
        return
    choice = _FlagByIdentity(m, node.body, node.target.id, scope)
    try:
        flags = choice.of_member(True), choice.of_member(False)
    except UnreadError:
        return
    listed = choice.listed
    if listed is None or False not in flags or m.turns:
        return
    tree = m.modules[-1].tree
    later = thaws_elsewhere(tree, node) or _shares_parameters(tree) or _is_called_again(m)
    frozen = [*_apart(iterable.models[0], listed)] if flags[1] is False else []
    frozen += listed if flags[0] is False else []
    for part in frozen:
        m.emit(
            FlagsSet, node, model=part, requires_grad=False, whole=True, by_name=True,
            thawed_later=later,
        )  # fmt: skip


def _apart(model: Model, listed: list[Model]) -> Iterator[Model]:
    """The outermost parts that have nothing in common with those listed."""
    if not any(model.overlaps(each) for each in listed):
        yield model
    elif not any(each.covers(model) for each in listed):
        for child in model.children.values():
            yield from _apart(child, listed)


@once
def _shares_parameters(tree: ast.Module) -> bool:
    """`decoder.weight = embedding.weight`: one that is frozen here may learn as a part of there."""
    return any(
        getattr(target, "attr", "") in _LEAVES and getattr(node.value, "attr", "") in _LEAVES
        for node in walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
    )


def _is_called_again(m: Interpreter) -> bool:
    """The function that runs may be called a second time, with different parts."""
    name = getattr(m.calls[-1][1], "name", "") if m.calls else None
    if name is None:
        return False
    used = [
        each
        for module in {id(each): each for each in m.modules}.values()
        for each in walk(module.tree)
        if name in (getattr(each, "attr", ""), getattr(each, "id", ""))
    ]
    return len(used) != 1


class _FlagByIdentity(FlagOfLeaf):
    """The body of a loop over `parameters()`, as a function of whether one is in a set."""

    def __init__(self, m: Interpreter, body: list[ast.stmt], leaf: str, scope: Scope) -> None:
        super().__init__(body, "", leaf, scope)
        self._machine, self._scope = m, scope
        self._is_member = False
        self._set = ""
        self.listed: list[Model] | None = None
        """The modules of which all parameters are in the set."""

    def of_member(self, is_member: bool) -> bool | None:
        """The flag of a parameter that is in the set, or is not."""
        self._is_member = is_member
        return self.of("")

    def _compared(self, node: ast.Compare) -> bool:
        sign, right = node.ops[0], node.comparators[0]
        is_leaf = ast.unparse(node.left) in (self._leaf, f"id({self._leaf})")
        if not is_leaf or not isinstance(sign, (ast.In, ast.NotIn)):
            raise UnreadError
        if not isinstance(right, ast.Name) or self._set not in ("", right.id):
            raise UnreadError
        if not self._set:
            self._set, self.listed = right.id, self._members_of(right.id)
        return self._is_member == isinstance(sign, ast.In)

    def _members_of(self, name: str) -> list[Model]:
        """The modules whose parameters a variable holds, where it holds all of them."""
        m = self._machine
        definition = m.calls[-1][1] if m.calls else m.modules[0].tree
        stored = stores_in(definition).get(name, [])
        value = self._scope.variables.get(name)
        if len(stored) != 1 or stored[0] is None or not self._is_whole(stored[0]):
            raise UnreadError
        if not _is_only_read(definition, name):
            raise UnreadError
        if isinstance(value, Parameters) and value.complete and not value.part:
            return value.models if not value.tensors else self._unread()
        found: list[Model] = []
        for each in value.values if isinstance(value, Sequence) else self._unread():
            leaf = each.of[0] if isinstance(each, Unknown) and len(each.of) == 1 else each
            if not isinstance(leaf, Tensor) or (not leaf.is_parameter and leaf.role != "parameter"):
                raise UnreadError
            found += leaf.models
        return found

    def _unread(self) -> list[Model]:
        raise UnreadError

    def _is_whole(self, node: ast.expr) -> bool:
        """`set(part.parameters())`, `set(map(id, part.parameters()))`, or a comprehension without
        conditions over these, or over few parts."""
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("set", "frozenset"):
            return len(node.args) == 1 and self._is_whole(node.args[0])
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "map":
            by = getattr(node.args[0], "id", "") if len(node.args) == 2 else ""
            return by == "id" and _are_parameters(node.args[1])
        if not isinstance(node, _COMPREHENSIONS):
            return _are_parameters(node)
        *outer, last = node.generators
        element = ast.unparse(last.target)
        plain = ast.unparse(node.elt) in (element, f"id({element})")
        if not plain or any(each.ifs for each in node.generators):
            return False
        return _are_parameters(last.iter) and all(map(self._goes_through_few, outer))

    def _goes_through_few(self, generator: ast.comprehension) -> bool:
        source = generator.iter
        if isinstance(source, (ast.Tuple, ast.List)):
            return len(source.elts) <= _MOST and not any(
                isinstance(each, ast.Starred) for each in source.elts
            )
        value = self._scope.variables.get(source.id) if isinstance(source, ast.Name) else None
        if not isinstance(value, Sequence) or value.open or len(value.values) > _MOST:
            return False
        return all(isinstance(each, Model) for each in value.values)


def _is_only_read(definition: ast.AST, name: str) -> bool:
    """A variable's set stays as it was made: it is asked for members, counted or gone through."""
    loads = reads = 0
    for node in walk(definition):
        if isinstance(node, ast.Name):
            loads += node.id == name and isinstance(node.ctx, ast.Load)
            continue
        asked: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            asked = node.comparators
        elif isinstance(node, (ast.For, ast.comprehension)):
            asked = [node.iter]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in _COUNTS:
            asked = node.args
        reads += sum(isinstance(each, ast.Name) and each.id == name for each in asked)
    return loads == reads


def _are_parameters(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "parameters"
        and not (node.args or node.keywords)
    )
