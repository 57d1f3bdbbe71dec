"""Whether data is in the order of its labels, read off the expressions that made them."""

from __future__ import annotations

import ast

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.nodes import last_part, walk
from trueloop.doctor.model.things import Dataset, Loop, Tensor
from trueloop.doctor.model.value_events import OrderedSlice
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.syntax import once, size_of, written
from trueloop.doctor.static.interpreter.values import (
    Class,
    Constant,
    Function,
    Sequence,
    Value,
    constant,
)
from trueloop.doctor.static.stubs.class_after_class import (
    attribute_returned,
    class_after_class,
    filled_by_class,
)

_JOINS = frozenset("cat concat concatenate hstack vstack".split())
_CATS = frozenset("cat concat concatenate".split())
_FULL = frozenset({"full", "full_like"})
_FILLED = frozenset("zeros ones full zeros_like ones_like full_like".split())
_SAME = frozenset(
    "unsqueeze squeeze view reshape long float int double to type flatten ravel clone contiguous"
    " astype tensor as_tensor from_numpy array asarray LongTensor FloatTensor cpu cuda numpy copy"
    " requires_grad_ split chunk tensor_split".split()
)

_SEVERAL = 10
"""Samples of a label that fill most of a batch."""


def sorted_by_label(m: Interpreter, tensors: list[Value]) -> Location | None:
    """Where the labels among the tensors of a data set were put in order."""
    for tensor in tensors[1:]:
        place = tensor.made if isinstance(tensor, Tensor) else None
        if place is None or not place.line:
            continue
        tree = _tree(m, place.path)
        m.spend(size_of(tree) >> 5 if tree is not None else 0, place)
        node = _at(tree, place) if tree is not None else None
        all_rows = tensor.rows_of if isinstance(tensor, Tensor) else None
        if isinstance(node, ast.Subscript) and _is_mask(node.slice) and all_rows is not None:
            if (before := sorted_by_label(m, [all_rows, all_rows])) is not None:
                return before  # those that are left have the order of all
            continue
        if tree is not None and node is not None and is_ordered(node, tree):
            return place
        if node is not None and isinstance(tensor, Tensor) and _joins_one_label_each(node, tensor):
            return place
    return None


def _is_mask(index: ast.expr) -> bool:
    """`labels[~held_out]`, `labels[labels < 5]`."""
    inverts = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert)
    return inverts or isinstance(index, ast.Compare)


def _joins_one_label_each(node: ast.expr, joined: Tensor) -> bool:
    """The labels were put together of parts that are full of one number each, wherever these were
    made, and no two of the same one."""
    call = _unwrapped(node)
    while call is not node and len(joined.of) == 1 and isinstance(joined.of[0], Tensor):
        joined = joined.of[0]  # before its shape or type changed
    is_join = isinstance(call, ast.Call) and last_part(call.func) in _CATS
    if not isinstance(call, ast.Call) or not is_join or not _along_rows(call):
        return False
    numbers = [each.fill if isinstance(each, Tensor) else None for each in joined.of]
    lengths = [_length(each) for each in joined.of]
    if None in numbers or not len({*numbers}) == len(numbers) > 1 or min(lengths) < _SEVERAL:
        return False
    # Where a loop has more turns than were gone through, it has to count the labels.
    return _length(joined) == sum(lengths) or all(_is_counted(each) for each in joined.of)


def _is_counted(part: Value) -> bool:
    """The number that it is full of counts the turns of a loop."""
    if isinstance(part, Tensor) and len(part.of) == 1:
        part = part.of[0]  # before its type changed
    label = part.made_from[1] if isinstance(part, Tensor) and len(part.made_from) > 1 else None
    return isinstance(label, Constant) and bool(label.loop_variant) and label.modulo is None


def _along_rows(join: ast.Call) -> bool:
    """The parts become rows, not columns side by side."""
    along = [*join.args[1:], *(each.value for each in join.keywords if each.arg in ("dim", "axis"))]
    return all(written(each) == "0" for each in along)


def _length(part: Value) -> int:
    rows = part.shape[0] if isinstance(part, Tensor) and part.shape else None
    return rows if isinstance(rows, int) else 0


def notice_slice(
    m: Interpreter, labels: Tensor, index: Value | None, part: Tensor, node: ast.AST
) -> None:
    """Note a run of labels, or a part of those that were split (without an index), where they are
    in order and a loop takes one after the other."""
    if not m.turns or m.inside_models or not (index is None or _goes_forward(index)):
        return
    ordered = sorted_by_label(m, [labels, labels])
    if ordered is not None:
        m.emit(OrderedSlice, node, part=part, ordered=ordered)


def _goes_forward(index: Value) -> bool:
    """`[i : i + size]`, with a number that a `range` counts."""
    start = index.values[0] if isinstance(index, Sequence) and index.kind == "slice" else None
    loop = start.loop_variant if isinstance(start, Constant) else None
    return isinstance(loop, Loop) and loop.counted


def _tree(m: Interpreter, path: str) -> ast.Module | None:
    for module in m.modules:
        if module.path == path:
            return module.tree
    for scope in m.namespaces.values():
        if scope.module.path == path:
            return scope.module.tree
    return None


def _at(tree: ast.AST, place: Location) -> ast.expr | None:
    """The expression at exactly this place."""
    return _by_place(tree).get((place.line, place.column, place.end_column))


@once
def _by_place(tree: ast.AST) -> dict[tuple[int, int, int], ast.expr]:
    """The expressions of a file by line, column and last column: of several the outermost."""
    found: dict[tuple[int, int, int], ast.expr] = {}
    for node in walk(tree):
        if isinstance(node, ast.expr):
            key = node.lineno, node.col_offset + 1, (node.end_col_offset or 0) + 1
            found.setdefault(key, node)
    return found


def is_ordered(node: ast.expr, tree: ast.Module, depth: int = 6) -> bool:
    """The expression is a run of one label after that of a second one."""
    if depth == 0:
        return False
    if isinstance(node, ast.Name):
        if _is_filled_by_class(node, tree):
            return True
        value = _assigned(node, tree)
        return value is not None and is_ordered(value, tree, depth - 1)
    if isinstance(node, ast.ListComp):
        return _lists_by_class(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
        return isinstance(node.left, ast.Call) and last_part(node.left.func) == "arange"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _adds_runs(node)
    if isinstance(node, ast.Subscript):
        return _is_sorting(node.slice, tree, depth - 1)
    if not isinstance(node, ast.Call):
        return False
    name = last_part(node.func)
    if name in _JOINS and node.args:
        return _along_rows(node) and _joins_labels(node.args[0], tree, depth - 1)
    if name in ("repeat_interleave", "repeat"):
        return _repeats_each(node, name, tree)
    if name in _SAME:
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if inner is not None and not _is_module(inner):
            return is_ordered(inner, tree, depth - 1)
        return bool(node.args) and is_ordered(node.args[0], tree, depth - 1)
    return False


def _joins_labels(parts: ast.expr, tree: ast.Module, depth: int) -> bool:
    if isinstance(parts, ast.Name):
        if _is_filled_by_class(parts, tree):
            return True
        value = _assigned(parts, tree)
        return value is not None and depth > 0 and _joins_labels(value, tree, depth - 1)
    if isinstance(parts, (ast.ListComp, ast.GeneratorExp)):
        # A run of one label for each class: `[torch.full((n,), c) for c in range(3)]`.
        element = _unwrapped(parts.elt)
        bound = {each.id for each in walk(parts.generators[0].target) if isinstance(each, ast.Name)}
        used = {each.id for each in walk(element) if isinstance(each, ast.Name)}
        is_filled = isinstance(element, ast.Call) and last_part(element.func) in _FULL
        return is_filled and bool(bound & used)
    if isinstance(parts, (ast.List, ast.Tuple)) and len(parts.elts) >= 2:
        labels = [_label(each, tree) for each in parts.elts]
        return None not in labels and len(set(labels)) > 1
    return False


def _label(node: ast.expr, tree: ast.Module) -> str | None:
    """The one label that an expression is full of, as written."""
    element = _unwrapped(node)
    if isinstance(element, ast.Name):
        value = _assigned(element, tree)
        element = _unwrapped(value) if value is not None else element
    if isinstance(element, ast.BinOp) and isinstance(element.op, (ast.Add, ast.Mult)):
        inner = _label(element.left, tree)
        return None if inner is None else f"{inner}{written(element.right)}"
    if not isinstance(element, ast.Call):
        return None
    name = last_part(element.func)
    if name not in _FILLED:
        return None
    if name.startswith("full"):
        value = element.args[1] if len(element.args) > 1 else None
        return written(value) if value is not None else None
    return name.partition("_")[0]


def _unwrapped(node: ast.expr) -> ast.expr:
    """Without calls that change only the shape or the type."""
    while isinstance(node, ast.Call) and last_part(node.func) in _SAME:
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if inner is not None and not _is_module(inner):
            node = inner
        elif node.args:
            node = node.args[0]
        else:
            break
    return node


def _repeats_each(node: ast.Call, name: str, tree: ast.Module) -> bool:
    """`torch.arange(10).repeat_interleave(100)`, `np.repeat(np.arange(10), 100)`."""
    source = node.func.value if isinstance(node.func, ast.Attribute) else None
    if source is not None and _is_module(source):
        if name == "repeat" and written(source) not in ("np", "numpy"):
            return False
        source = node.args[0] if node.args else None
    elif name == "repeat":
        # A tensor's `repeat` tiles; an array's method repeats each element.
        return False
    if isinstance(source, ast.Name):
        source = _assigned(source, tree)
    return isinstance(source, ast.Call) and last_part(source.func) == "arange"


def _is_sorting(index: ast.expr, tree: ast.Module, depth: int) -> bool:
    """The index sorts: `labels[labels.argsort()]`."""
    if isinstance(index, ast.Name):
        value = _assigned(index, tree)
        return value is not None and depth > 0 and _is_sorting(value, tree, depth - 1)
    return isinstance(index, ast.Call) and last_part(index.func) == "argsort"


def _lists_by_class(node: ast.ListComp) -> bool:
    """`[label for label in range(5) for _ in range(100)]`."""
    element, first = node.elt, node.generators[0].target
    if len(node.generators) < 2 or not isinstance(element, ast.Name):
        return False
    return isinstance(first, ast.Name) and first.id == element.id and not node.generators[0].ifs


def _adds_runs(node: ast.BinOp) -> bool:
    """`[0] * 50 + [1] * 50`."""
    parts: list[ast.expr] = []
    waiting: list[ast.expr] = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add):
            waiting += [each.left, each.right]
        else:
            parts.append(each)
    labels = [_run_of(each) for each in parts]
    return None not in labels and len({*labels}) == len(labels) > 1


def _run_of(node: ast.expr) -> str | None:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    items = node.left
    one = isinstance(items, ast.List) and len(items.elts) == 1
    return written(items) if one else None


def _is_filled_by_class(name: ast.Name, tree: ast.Module) -> bool:
    """A list that a loop over the classes fills in the same function, or at the top."""
    where: ast.AST = _function_around(name, tree)
    return name.id in filled_by_class(where)


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("torch", "np", "numpy", "th")


def _function_around(name: ast.Name, tree: ast.Module) -> ast.AST:
    """The innermost function that a name is used in, or the file."""
    inner: ast.AST = tree
    for node in walk(tree):
        if (
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.lineno <= name.lineno <= (node.end_lineno or 0)
            and node.lineno >= getattr(inner, "lineno", 0)
        ):
            inner = node
    return inner


def _assigned(name: ast.Name, tree: ast.Module) -> ast.expr | None:
    """The last value assigned to a name before it is used, in the same function or at the top; None
    if it is assigned in a branch or more than can be followed."""
    inner = _function_around(name, tree)
    for where in (inner, tree):
        found: ast.expr | None = None
        for statement in getattr(where, "body", []):
            if statement.lineno >= name.lineno:
                break
            value = _binding(statement, name.id)
            found = value or found
        if found is not None:
            return found
    return None


def _binding(statement: ast.stmt, name: str) -> ast.expr | None:
    if not isinstance(statement, ast.Assign):
        return None
    value = statement.value
    for target in statement.targets:
        if isinstance(target, ast.Name) and target.id == name:
            return value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for part, each in zip(target.elts, value.elts, strict=False):
                if isinstance(part, ast.Name) and part.id == name:
                    return each
    return None


def one_label_each(parts: list[Dataset]) -> bool:
    """Each part has one label for all its samples, and no two have the same one."""
    labels = [_label_of_all(each) for each in parts]
    known = {each for each in labels if each is not None}
    return None not in labels and len(known) == len(labels) > 1


def _label_of_all(dataset: Dataset) -> float | str | None:
    if len(dataset.tensors) == 2 and isinstance(dataset.tensors[1], Tensor):
        return dataset.tensors[1].fill
    read = dataset.cls.lookup("__getitem__") if isinstance(dataset.cls, Class) else None
    if not isinstance(read, Function) or dataset.size == 1:
        return None
    name = attribute_returned(read.node)
    value = constant(dataset.attributes.get(name)) if name else None
    return value if isinstance(value, (int, str)) else None


def sorted_in_class(m: Interpreter, cls: Class) -> Location | None:
    """Where a data set of the user's own puts its samples in the order of their labels: by
    `argsort` of them, or in a loop over the classes; and nothing shuffles them after it."""
    initialise, read = cls.lookup("__init__"), cls.lookup("__getitem__")
    if not isinstance(initialise, Function):
        return None
    found: ast.stmt | None = _sorting(initialise.node)
    if found is None and isinstance(read, Function):
        found = class_after_class(initialise.node, read.node)
    if found is None:
        return None
    return Location(initialise.module.path, found.lineno, found.col_offset + 1)


@once
def _sorting(node: ast.AST) -> ast.Assign | None:
    """The statement of an `__init__` that sorts by the labels, where the order is then used."""
    if "shuffle" in (text := written(node)) or "perm" in text:
        return None
    sorts: dict[str, ast.Assign] = {}
    for each in walk(node):
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            value = each.value
            if isinstance(value, ast.Call) and last_part(value.func) == "argsort":
                about = written(value).lower()
                if any(word in about for word in ("label", "target", "class", "(y)", "y.arg")):
                    sorts[each.targets[0].id] = each
    for each in walk(node):
        if isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Name):
            found = sorts.get(each.slice.id)
            if found is not None:
                return found
    return None
