"""Lists that loops fill with the samples of one class after those of a second; pure syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.syntax import once, written

_KEEPS = frozenset("tensor as_tensor array asarray LongTensor list tuple long int".split())


@once
def filled_by_class(where: ast.AST) -> dict[str, ast.stmt]:
    """Lists of a function, or of a file's top, that get one label many times before they get the
    next -> the loop that fills them. With `*`: their last entries are the labels."""
    body = getattr(where, "body", [])
    found: dict[str, ast.stmt] = {}
    shuffled = _shuffled(body)
    for statement in _fillers(body):
        for name in _fills(statement) if isinstance(statement, ast.For) else _lists(statement):
            if name.removeprefix("*") not in shuffled and "*" not in shuffled:
                found[name] = statement
    return found


def _fillers(body: list[ast.stmt]) -> Iterator[ast.For | ast.Assign]:
    """The outermost loops, and assignments."""
    for statement in body:
        if isinstance(statement, (ast.For, ast.Assign)):
            yield statement
        elif isinstance(statement, (ast.If, ast.With)):
            yield from _fillers([*statement.body, *getattr(statement, "orelse", [])])


def _shuffled(body: list[ast.stmt]) -> set[str]:
    """The names of the lists that are shuffled; `*` where something is that has no name."""
    found: set[str] = set()
    for statement in body:
        for node in walk(statement):
            if not isinstance(node, ast.Call):
                continue
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0] if node.args else None
            if called == "sort" and isinstance(node.func, ast.Attribute):
                found.add(written(node.func.value))
            elif called == "shuffle" and isinstance(first, (ast.Name, ast.Attribute)):
                found.add(written(first))
            elif called in ("shuffle", "permutation", "randperm", "sample"):
                found.add("*")
    return found


def _fills(loop: ast.For) -> Iterator[str]:
    """The lists that each turn adds many equal labels to: the loop's own number, or the name of
    what it goes through."""
    labels = _labels_of(loop)
    if not labels:
        return
    for inner, statement in _statements(loop.body, within=False):
        target = _added(statement)
        if target is None:
            continue
        name, value, many = target
        if not (inner or many):
            continue
        if _label_in(value) in labels:
            yield name
        elif isinstance(value, ast.Tuple) and value.elts and _label_in(value.elts[-1]) in labels:
            yield f"*{name}"


def _lists(statement: ast.Assign) -> Iterator[str]:
    """`samples = [(path, c) for c, name in enumerate(names) for path in folders[name]]`."""
    made = statement.value
    if not isinstance(made, ast.ListComp) or len(made.generators) < 2:
        return
    labels, name = _labels_of(made.generators[0]), written(statement.targets[0])
    if _label_in(made.elt) in labels:
        yield name
    elif isinstance(made.elt, ast.Tuple) and _label_in(made.elt.elts[-1]) in labels:
        yield f"*{name}"


def _labels_of(loop: ast.For | ast.comprehension) -> set[str]:
    """The names that count the turns of a loop over classes, and names made of them."""
    source, target = loop.iter, loop.target
    called = getattr(source.func, "id", "") if isinstance(source, ast.Call) else ""
    found: set[str] = set()
    if called == "range" and isinstance(target, ast.Name):
        found.add(target.id)
    if called == "enumerate" and isinstance(target, ast.Tuple) and target.elts:
        first = target.elts[0]
        if isinstance(first, ast.Name):
            found.add(first.id)
    return found


def _statements(body: list[ast.stmt], *, within: bool) -> Iterator[tuple[bool, ast.stmt]]:
    """Statements of a loop, and whether they are in a loop inside of it."""
    for statement in body:
        if isinstance(statement, ast.For):
            yield from _statements(statement.body, within=True)
        elif isinstance(statement, (ast.With, ast.If)):
            yield from _statements(statement.body, within=within)
        else:
            yield within, statement


def _added(statement: ast.stmt) -> tuple[str, ast.expr, bool] | None:
    """The list, the label, and whether it is added many times at once: `labels.append(c)`,
    `labels.extend([c] * n)`, `labels += [c] * n`."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        value = _repeated(statement.value)
        return None if value is None else (written(statement.target), value, True)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if len(call.args) != 1:
        return None
    holder = written(call.func.value)
    if call.func.attr == "append":
        full = _filled(call.args[0])
        return (holder, full, True) if full is not None else (holder, call.args[0], False)
    if call.func.attr == "extend":
        value = _repeated(call.args[0])
        return None if value is None else (holder, value, True)
    return None


def _filled(node: ast.expr) -> ast.expr | None:
    """The number that a tensor is full of: `torch.full((n,), c)`."""
    is_full = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "full"
    return node.args[1] if isinstance(node, ast.Call) and is_full and node.args[1:] else None


def _repeated(node: ast.expr) -> ast.expr | None:
    """The one element of a list that is repeated."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for items in (node.left, node.right):
            if isinstance(items, ast.List) and len(items.elts) == 1:
                return items.elts[0]
    if isinstance(node, ast.ListComp) and len(node.generators) == 1:
        return node.elt
    return None


def _label_in(node: ast.expr) -> str:
    """The name of a label, without conversions."""
    node = _unwrapped(node)
    return node.id if isinstance(node, ast.Name) else ""


# ------------------------------------------------------------------------------- data sets


def class_after_class(initialise: ast.AST, read: ast.AST) -> ast.stmt | None:
    """The loop of an `__init__` that puts samples in the order of their labels, which the
    `__getitem__` returns."""
    filled = filled_by_class(initialise)
    if not filled:
        return None
    held = _attributes(initialise, filled)
    returned = _label_returned(read)
    return held.get(returned) if returned is not None else None


def _attributes(initialise: ast.AST, filled: dict[str, ast.stmt]) -> dict[str, ast.stmt]:
    """`self.labels`, as the lists are called that are put there."""
    found = {name: loop for name, loop in filled.items() if "self." in name}
    for node in walk(initialise):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = [*zip(target.elts, node.value.elts, strict=False)]
            for attribute, value in pairs:
                name = _label_in(value)
                for mark in ("", "*"):
                    if f"{mark}{name}" in filled and isinstance(attribute, ast.Attribute):
                        found[f"{mark}{written(attribute)}"] = filled[f"{mark}{name}"]
    return found


def attribute_returned(read: ast.AST) -> str | None:
    """The attribute that is the second part of each sample: `return image, self.label`."""
    value = _returned(read)
    is_pair = isinstance(value, ast.Tuple) and len(value.elts) == 2
    last = _unwrapped(value.elts[1]) if isinstance(value, ast.Tuple) and is_pair else None
    of_self = isinstance(last, ast.Attribute) and getattr(last.value, "id", "") == "self"
    return last.attr if isinstance(last, ast.Attribute) and of_self else None


def _returned(read: ast.AST) -> ast.expr | None:
    """The one value that a method returns."""
    returns = [node for node in walk(read) if isinstance(node, ast.Return)]
    return returns[0].value if len(returns) == 1 else None


def _label_returned(read: ast.AST) -> str | None:
    """The attribute that the last part of each sample is taken from, or `*` and that of the pairs
    whose last part it is."""
    value = _returned(read)
    if isinstance(value, ast.Subscript):
        return f"*{written(value.value)}"
    parts: list[ast.expr] = value.elts if isinstance(value, ast.Tuple) else []
    if isinstance(value, ast.Dict):
        parts = value.values
    if not parts:
        return None
    last = _unwrapped(parts[-1])
    if isinstance(last, ast.Subscript):
        return written(last.value)
    return _unpacked(read, last.id) if isinstance(last, ast.Name) else None


def _unwrapped(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and node.args:
        if written(node.func).rpartition(".")[2] not in _KEEPS:
            break
        node = node.args[0]
    return node


def _unpacked(read: ast.AST, name: str) -> str | None:
    """`path, label = self.samples[i]`, or `label = self.labels[i]`."""
    for node in walk(read):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Subscript):
            continue
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id == name:
            return written(node.value.value)
        last = target.elts[-1] if isinstance(target, ast.Tuple) else None
        if isinstance(last, ast.Name) and last.id == name:
            return f"*{written(node.value.value)}"
    return None
