"""Where source takes `len(batch)` for the number of samples; pure syntax, of a batch that is known
to be a dict."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from trueloop.doctor.model.nodes import last_part, walk

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_DEEP = 3
_VIEWS = ("items", "values", "keys")
_FILL = ("append", "extend", "insert")
_NUMBERS = ("float", "int")


def batch_name(loop: ast.For | ast.AsyncFor | ast.comprehension) -> str:
    """The name of a loop's batch: `for step, batch in enumerate(loader)`; empty if it has none."""
    target = loop.target
    if isinstance(target, ast.Tuple):
        counts = isinstance(loop.iter, ast.Call) and last_part(loop.iter.func) == "enumerate"
        if not counts or len(target.elts) != 2:
            return ""
        target = target.elts[1]
    return target.id if isinstance(target, ast.Name) else ""


def counted_lengths(tree: ast.Module, body: Sequence[ast.AST], name: str) -> list[ast.Call]:
    """The calls of `len(batch)` whose result is used as a number of samples: a loss is multiplied
    by it, something is divided by it, or it is added to a count."""
    return [*dict.fromkeys(_Uses(tree, body).lengths(name, _DEEP))]


def of_dicts(cls: ast.AST, function: ast.AST) -> bool:
    """The `__getitem__` of a class gives plain dicts, or one of a list of these (`self.rows[i]`)
    that the class fills."""
    returned = [each.value for each in walk(function) if isinstance(each, ast.Return)]
    lists = {
        each.value.attr
        for each in returned
        if isinstance(each, ast.Subscript)
        and isinstance(each.value, ast.Attribute)
        and getattr(each.value.value, "id", "") == "self"
    }
    if len(returned) != 1 or not lists:
        return returns_dict(function)
    return _has_rows(cls, lists.pop())


def _has_rows(cls: ast.AST, attribute: str) -> bool:
    """A class makes an attribute of its own a list of dicts, and of nothing else."""
    parts: list[ast.expr] = []
    for node in walk(cls):
        if isinstance(node, ast.Assign) and attribute in map(last_part, node.targets):
            if isinstance(node.value, ast.ListComp):
                parts.append(node.value.elt)
            elif not isinstance(node.value, ast.List):
                return False
            else:
                parts += node.value.elts
        elif isinstance(node, ast.Call) and last_part(node.func) in _FILL:
            if last_part(getattr(node.func, "value", node)) != attribute:
                continue
            if last_part(node.func) != "append" or len(node.args) != 1:
                return False
            parts.append(node.args[0])
    return bool(parts) and all(map(_is_dict, parts))


def returns_dict(function: ast.AST) -> bool:
    """Every `return` of a function gives a plain dict."""
    nodes = [*walk(function)]
    values = [each.value for each in nodes if isinstance(each, ast.Return)]
    assigned: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
    return bool(values) and all(
        _is_dict(value)
        or (isinstance(value, ast.Name) and all(map(_is_dict, assigned.get(value.id, [value]))))
        for value in values
    )


def _is_dict(node: ast.AST | None) -> bool:
    is_made = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "dict"
    return is_made or isinstance(node, (ast.Dict, ast.DictComp))


class _Uses:
    """The uses of names in a stretch of code."""

    def __init__(self, tree: ast.Module, body: Sequence[ast.AST]) -> None:
        self._tree, self._body = tree, body
        self._parents: dict[ast.AST, ast.AST] = {
            child: node for node in self._nodes() for child in ast.iter_child_nodes(node)
        }

    def _nodes(self) -> Iterator[ast.AST]:
        for statement in self._body:
            yield from walk(statement)

    def lengths(self, name: str, deep: int) -> Iterator[ast.Call]:
        if self._is_gone_through(name):
            return
        for node in self._nodes():
            if not isinstance(node, ast.Call):
                continue
            if getattr(node.func, "id", "") == "len" and len(node.args) == 1:
                if _is_name(node.args[0], name) and self._counts(node, deep):
                    yield node
            elif deep:
                for function, parameter in self._handed_on(node, [name]):
                    length = _returned_length(function, parameter)
                    if length is not None and self._counts(node, deep):
                        yield length
                    yield from _Uses(self._tree, function.body).lengths(parameter, deep - 1)

    def _is_gone_through(self, name: str) -> bool:
        """Its entries are looked at one by one (a batch of several tasks or views), other than to
        move them: then their number may be what is meant."""
        for node in self._nodes():
            iterables: list[ast.expr] = []
            if isinstance(node, (ast.For, ast.AsyncFor)):
                iterables = [node.iter]
            elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
                if isinstance(node, ast.DictComp) and _moves(node):
                    continue
                iterables = [each.iter for each in node.generators]
            for each in iterables:
                if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
                    each = each.func.value if each.func.attr in _VIEWS else each
                if _is_name(each, name):
                    return True
        return False

    def _counts(self, node: ast.AST, deep: int) -> bool:
        """A number is used as one of samples."""
        parent = self._parents.get(node)
        if isinstance(parent, ast.keyword):
            parent = self._parents.get(parent)
        if isinstance(parent, ast.Call) and getattr(parent.func, "id", "") in _NUMBERS:
            return self._counts(parent, deep)
        if isinstance(parent, ast.BinOp):
            other = parent.left if parent.right is node else parent.right
            if isinstance(parent.op, ast.Mult):
                return not isinstance(other, ast.Constant)
            return isinstance(parent.op, ast.Div) and parent.right is node
        if isinstance(parent, ast.AugAssign):
            return isinstance(parent.op, (ast.Add, ast.Div, ast.Mult))
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            target = parent.targets[0]
            return isinstance(target, ast.Name) and self._is_count(target.id, deep)
        if isinstance(parent, ast.Call) and deep:
            return any(
                _Uses(self._tree, function.body)._is_count(parameter, deep - 1)
                for function, parameter in self._handed_on(parent, [node])
            )
        return False

    def _is_count(self, name: str, deep: int) -> bool:
        return any(
            _is_name(node, name) and isinstance(node.ctx, ast.Load) and self._counts(node, deep)
            for node in self._nodes()
            if isinstance(node, ast.Name)
        )

    def _handed_on(
        self, call: ast.Call, what: Iterable[str | ast.AST]
    ) -> Iterator[tuple[FunctionNode, str]]:
        """The function of this file that a call is of, if there is only one of that name, and the
        parameter that gets a value."""
        position = {*what}
        given = [
            number
            for number, each in enumerate(call.args)
            if each in position or getattr(each, "id", "") in position
        ]
        named = [
            each.arg
            for each in call.keywords
            if each.arg and (each.value in position or getattr(each.value, "id", "") in position)
        ]
        if not (given or named):
            return
        found = _functions(self._tree).get(last_part(call.func), [])
        if len(found) != 1:
            return
        parameters = [each.arg for each in found[0].args.args]
        bound = isinstance(call.func, ast.Attribute) and parameters[:1] == ["self"]
        shifted = [number + bound for number in given]
        named += [parameters[number] for number in shifted if number < len(parameters)]
        for name in named:
            yield found[0], name


def _returned_length(function: FunctionNode, name: str) -> ast.Call | None:
    """The call in `return len(batch)`, at the end of a function."""
    last = function.body[-1]
    value = last.value if isinstance(last, ast.Return) else None
    is_length = isinstance(value, ast.Call) and getattr(value.func, "id", "") == "len"
    if not isinstance(value, ast.Call) or not is_length or len(value.args) != 1:
        return None
    return value if _is_name(value.args[0], name) else None


@lru_cache(maxsize=8)
def _functions(tree: ast.Module) -> dict[str, list[FunctionNode]]:
    """The functions of a file by their names."""
    found: dict[str, list[FunctionNode]] = {}
    for node in walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.setdefault(node.name, []).append(node)
    return found


def _moves(node: ast.DictComp) -> bool:
    """`{key: value.to(device) for key, value in batch.items()}`."""
    value = node.value
    if isinstance(value, ast.IfExp):
        value = value.body
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value
    target = node.generators[0].target
    is_pair = isinstance(target, ast.Tuple) and len(target.elts) == 2
    return (
        is_pair
        and isinstance(target, ast.Tuple)
        and len(node.generators) == 1
        and not node.generators[0].ifs
        and isinstance(value, ast.Name)
        and _is_name(target.elts[1], value.id)
    )


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
