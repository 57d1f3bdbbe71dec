"""One layer in several places, as source writes it (`[layer] * n`), and whether that is meant."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.vocabulary import CONTAINERS

_COUNTS = re.compile(
    r"(^|_)(n|num|nb|number|count|depth|times|repeats?|\w*layers?|\w*blocks?|\w*heads?|stacks?)(_|$)",
    re.IGNORECASE,
)
"""Words of names that hold a number of layers."""
_INTEGER = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)
_UNROLLS = re.compile(r"unroll|unfold|iterat|recurs|recurrent|refine|cascade", re.IGNORECASE)
"""Networks whose stages may be one layer, applied again and again."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp)


class Repetition(NamedTuple):
    """An expression that puts one object in several places."""

    node: ast.expr
    """The list, or the call that appends."""
    element: ast.expr
    """The expression of the object, which is evaluated once."""


class Verdict(NamedTuple):
    """The judgement on a repetition."""

    by_mistake: bool
    parameter: str = ""
    """The parameter of a function that repeats what it is given: its caller decides."""


def repetitions(node: ast.AST) -> list[Repetition]:
    """The elements that an expression puts in several places: `[layer] * n`, `[layer for _ in
    range(n)]`, `{name: layer for name in names}`; none where it does not."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for side in (node.left, node.right):
            if isinstance(side, (ast.List, ast.Tuple)):
                return [Repetition(node, each) for each in side.elts]
    element: ast.expr | None = None
    if isinstance(node, _COMPREHENSIONS):
        element = node.elt
    elif isinstance(node, ast.DictComp):
        element = node.value
    if isinstance(element, ast.Name):
        assert isinstance(node, (*_COMPREHENSIONS, ast.DictComp))
        bound = {each for generator in node.generators for each in _names(generator.target)}
        return [] if element.id in bound else [Repetition(node, element)]
    return []


def is_count(tree: ast.Module, node: ast.BinOp) -> bool:
    """The factor of `[layer] * n` is a number of layers: not a flag (`[norm] * use_norm`), and more
    than one if the parameters of the function around have their defaults."""
    factor = node.left if isinstance(node.right, (ast.List, ast.Tuple)) else node.right
    path = _path_to(tree, node)
    function = next((each for each in reversed(path) if isinstance(each, _FUNCTIONS)), None)
    known = {} if function is None else _defaults(function)
    by_default = _number(factor, known)
    if by_default is not None:
        return by_default > 1
    if isinstance(factor, ast.BinOp):
        return isinstance(factor.op, _INTEGER)
    if isinstance(factor, ast.Call):
        return _last_name(factor) == "len"
    name = getattr(factor, "id", getattr(factor, "attr", ""))
    flag = isinstance(factor, ast.Name) and isinstance(known.get(name), bool)
    return not flag and _COUNTS.search(name) is not None


def _defaults(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, object]:
    """The parameters of a function that have constants as defaults."""
    spec = function.args
    names = [*spec.posonlyargs, *spec.args]
    pairs = [
        *zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True),
        *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
    ]
    return {each.arg: value.value for each, value in pairs if isinstance(value, ast.Constant)}


def _number(node: ast.expr, known: dict[str, object]) -> int | None:
    """The value of a sum, difference or product of parameters."""
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, known), _number(node.right, known)
        if left is None or right is None:
            return None
        signs = {ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}
        return next((signs[kind] for kind in signs if isinstance(node.op, kind)), None)
    value: object = node.value if isinstance(node, ast.Constant) else None
    value = known.get(node.id) if isinstance(node, ast.Name) else value
    return value if type(value) is int else None


def appended(node: ast.AST) -> Repetition | None:
    """`layers.append(layer)`: the same layer each time, where it is in a loop."""
    function = node.func if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(function, ast.Attribute):
        return None
    last = node.args[-1] if node.args else None
    adds = function.attr in ("append", "add_module")
    return Repetition(node, last) if adds and isinstance(last, ast.Name) else None


def behind(tree: ast.Module, statement: ast.stmt) -> list[Repetition]:
    """The repetitions in a statement that makes a container, or in one that makes the list which
    it is made of."""
    found = [each for node in walk(statement) for each in repetitions(node)]
    added = [appended(node) for node in walk(statement)]
    found += [each for each in added if each is not None]
    if found:
        return found
    path = _path_to(tree, statement)
    around = next((each for each in reversed(path) if isinstance(each, _FUNCTIONS)), tree)
    used = _names(statement)
    for each in walk(around):
        if isinstance(each, ast.Assign) and used & _names_of(each.targets):
            found += [one for node in walk(each.value) for one in repetitions(node)]
        added_to = appended(each)
        if added_to is not None and getattr(_holder(added_to.node), "id", "") in used:
            found.append(added_to)
    return found


def judge(tree: ast.Module, sharing: Collection[int], found: Repetition) -> Verdict:
    """Nobody writes `[nn.Linear(4, 4)] * n` for one layer. A layer that has a name of its own may
    be shared on purpose: it is a mistake if the name is used for nothing else, and the layers
    are called one after the other."""
    path = _path_to(tree, found.node)
    if (
        not path
        or _speaks_of_sharing(path, sharing, found.node)
        or _is_one_of_two_ways(path, found.node)
    ):
        return Verdict(False)
    if isinstance(found.element, ast.Call) and appended(found.node) is None:
        return Verdict(True)
    function = next((each for each in reversed(path) if isinstance(each, _FUNCTIONS)), None)
    if not isinstance(found.element, ast.Name) or function is None:
        return Verdict(False)
    name = found.element.id
    spec = function.args
    given = [each.arg for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    if name in given:
        helps = given[0] not in ("self", "cls")
        return Verdict(False, name if helps else "")
    owner = next((each for each in reversed(path) if isinstance(each, ast.ClassDef)), None)
    return Verdict(owner is not None and _follow(owner, function, path, found, name))


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in walk(node) if isinstance(each, ast.Name)}


def _names_of(targets: list[ast.expr]) -> set[str]:
    return {each.id for each in targets if isinstance(each, ast.Name)}


def _holder(call: ast.expr) -> ast.expr | None:
    """`layers` of `layers.append(layer)`."""
    function = call.func if isinstance(call, ast.Call) else None
    return function.value if isinstance(function, ast.Attribute) else None


def _path_to(tree: ast.AST, wanted: ast.AST) -> list[ast.AST]:
    """The nodes around a node, outermost first, without itself."""
    path: list[ast.AST] = []
    node = tree
    line = getattr(wanted, "lineno", 0)
    while node is not wanted:
        path.append(node)
        parts = [
            each for each in ast.iter_child_nodes(node)
            if getattr(each, "lineno", line) <= line <= (getattr(each, "end_lineno", line) or line)
        ]  # fmt: skip
        inner = next((each for each in parts if any(n is wanted for n in walk(each))), None)
        if inner is None:
            return []
        node = inner
    return path


def _speaks_of_sharing(path: list[ast.AST], sharing: Collection[int], node: ast.expr) -> bool:
    """The class, or the function, says that it shares weights, or a comment above it does."""
    outer = (each for each in path if isinstance(each, (ast.ClassDef, *_FUNCTIONS)))
    around = next(outer, node)
    first, last = getattr(around, "lineno", 0), getattr(around, "end_lineno", 0)
    return any(first - 3 <= line <= last for line in sharing)


def _is_one_of_two_ways(path: list[ast.AST], node: ast.expr) -> bool:
    """A condition decides between this and several layers, for the same attribute."""
    statement = next((each for each in reversed(path) if isinstance(each, ast.stmt)), None)
    targets = set(map(ast.dump, _targets(statement)))
    for outer, inner in zip(path, [*path[1:], node], strict=True):
        if isinstance(outer, ast.IfExp):
            other = outer.orelse if inner is outer.body else outer.body
            if not any(repetitions(each) for each in walk(other)):
                return True
        if isinstance(outer, ast.If) and inner is not outer.test:
            rest = outer.orelse if inner in outer.body else outer.body
            for each in (node for part in rest for node in walk(part)):
                same = targets & set(map(ast.dump, _targets(each)))
                if same and not any(repetitions(node) for node in walk(each)):
                    return True
    return False


def _targets(node: ast.AST | None) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else []


def _follow(
    owner: ast.ClassDef,
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    path: list[ast.AST],
    found: Repetition,
    name: str,
) -> bool:
    """A local name, bound once and used only here, of which a container of the class is made whose
    layers are called one after the other."""
    inside = walk(function)
    bound = [
        each for each in inside
        if isinstance(each, ast.Assign) and any(name in _names(t) for t in each.targets)
    ]  # fmt: skip
    uses = [each for each in inside if isinstance(each, ast.Name) and each.id == name]
    made = len(bound) == 1 and isinstance(bound[0].value, ast.Call) and len(bound[0].targets) == 1
    if function.name != "__init__" or not made or len(uses) != 2:
        return False
    if _UNROLLS.search(ast.dump(owner)):
        return False
    if appended(found.node) is not None and not _is_repeated_by_a_loop(path, bound[0]):
        return False
    return any(
        kind == "Sequential" or _is_chain(owner, attribute)
        for kind, attribute in _containers_of(inside, path, found.node)
    )


def _is_repeated_by_a_loop(path: list[ast.AST], bound: ast.stmt) -> bool:
    """The call is in a loop, which does not make the layer again."""
    loops = [each for each in path if isinstance(each, (ast.For, ast.While))]
    return bool(loops) and not any(node is bound for node in walk(loops[-1]))


def _containers_of(
    inside: list[ast.AST], path: list[ast.AST], node: ast.expr
) -> Iterator[tuple[str, str]]:
    """Kind and attribute of containers that are made of a list, as `self.layers = ...` says."""
    statement = next((each for each in reversed(path) if isinstance(each, ast.stmt)), None)
    lists = _names_of(_targets(statement))
    holder = _holder(node) if appended(node) is not None else None
    if isinstance(holder, ast.Name):
        lists.add(holder.id)
    for each in inside:
        target = each.targets[0] if isinstance(each, ast.Assign) else None
        if not isinstance(each, ast.Assign) or not isinstance(target, ast.Attribute):
            continue
        kind = _last_name(each.value)
        own = each is statement or (lists & _names(each.value))
        if kind in CONTAINERS and (own or _is_same_attribute(holder, target)):
            yield kind, target.attr


def _is_same_attribute(holder: ast.expr | None, target: ast.Attribute) -> bool:
    return isinstance(holder, ast.Attribute) and holder.attr == target.attr


def _last_name(node: ast.expr) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "attr", getattr(function, "id", ""))


def _variables(target: ast.expr, source: ast.expr, attribute: str) -> set[str]:
    """The names that a loop gives to the layers: `for i, layer in enumerate(self.layers)`."""
    if getattr(source, "attr", "") == attribute:
        return _names(target)
    if not isinstance(source, ast.Call) or not isinstance(target, ast.Tuple):
        return set()
    given = source.args
    if _last_name(source) == "enumerate" and len(target.elts) == 2 and given:
        return _variables(target.elts[1], given[0], attribute)
    if _last_name(source) != "zip":
        return set()
    pairs = zip(target.elts, given, strict=False)
    return {name for each, part in pairs for name in _variables(each, part, attribute)}


def _is_chain(owner: ast.ClassDef, attribute: str) -> bool:
    """`for layer in self.layers: x = layer(x)`, or `x = self.layers[i](x)` in a loop."""
    for loop in (each for each in walk(owner) if isinstance(each, ast.For)):
        variables = _variables(loop.target, loop.iter, attribute)
        for each in (node for part in loop.body for node in walk(part)):
            if not isinstance(each, ast.Assign):
                continue
            given = {name for target in each.targets for name in _names(target)}
            for call in (node for node in walk(each.value) if isinstance(node, ast.Call)):
                layer = call.func
                is_layer = isinstance(layer, ast.Name) and layer.id in variables
                if isinstance(layer, ast.Subscript):
                    is_layer = getattr(layer.value, "attr", "") == attribute
                if is_layer and any(given & _names(arg) for arg in call.args):
                    return True
    return False
