"""Means of the means of batches: noticed where a sum is divided by the number of batches."""

from __future__ import annotations

import ast
import re

from trueloop.doctor.model.events import Used
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import Dataset, Loader, Tensor
from trueloop.doctor.model.value_events import MeansOverSamples
from trueloop.doctor.static.interpreter.counters import by_default
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.passed_arguments import (
    call_at,
    code_around,
    where_left_out,
)
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import nodes_of, once, written
from trueloop.doctor.static.interpreter.values import (
    Constant,
    Function,
    Method,
    OpaqueObject,
    Sequence,
    Unknown,
    Value,
)
from trueloop.doctor.static.stubs.random_draws import aside

_DEPTH = 12


def notice_division(m: Interpreter, left: object, right: object, node: ast.AST) -> None:
    """`left / right`: inform the rules if it is a mean of batch means from one loader."""
    if not isinstance(left, (Unknown, Tensor)):
        return
    if _counts_samples(m, right, left, node):
        return
    means: list[Tensor] = []
    values = _summed(left, node)
    if values is not None:
        summed = all(_sums_means(m, node, each, means) for each in values.values)
    else:
        summed = _sums_means(m, node, left, means)
    loader = _loader_of(means)
    if not summed or loader is None:
        return
    where = _weight_left_out(left)
    if where is not None:
        if _counts_turns(right, means) and (_is_over(m, loader) or _read_after(m, loader, node)):
            m.emit(Used, where, what="mean of a meter", subject=loader)
    elif _counts_batches(m, right, loader, left) or (
        _counts_turns(right, means) and _is_over(m, loader)
    ):
        m.emit(Used, node, what="mean of batch means", subject=loader)


_LEFT_OUT = "<weight left out>"


def notice_weight(m: Interpreter, node: ast.BinOp, left: Value, right: Value, found: Value) -> None:
    """`self.sum += value * n` in a meter whose caller does not pass `n`, so that it is 1: note that
    call on the product."""
    for one, by in ((right, node.right), (left, node.left)):
        if isinstance(one, Constant) and one.value == 1 and isinstance(by, ast.Name):
            where = where_left_out(m, by.id)
            if where is not None and isinstance(found, (Unknown, Tensor)):
                found.attributes[_LEFT_OUT] = OpaqueObject("call", made=where)


def _weight_left_out(total: Value, depth: int = 3) -> Location | None:
    """The call that adds the last term of a meter's sum without its weight."""
    if not depth or not isinstance(total, (Unknown, Tensor)):
        return None
    note = total.attributes.get(_LEFT_OUT)
    if isinstance(note, OpaqueObject):
        return note.made
    terms = total.of if isinstance(total, Unknown) else total.terms
    parts = terms if isinstance(terms, (tuple, list)) else ()
    found = (_weight_left_out(each, depth - 1) for each in reversed(parts))
    return next((each for each in found if each is not None), None)


def _counts_samples(m: Interpreter, value: object, total: Value, node: ast.AST) -> bool:
    """It is the number of samples of the one loader whose batch means, with or without gradients,
    were added up; the rules are informed."""
    if not isinstance(value, (Unknown, Constant)):
        return False
    means: list[Tensor] = []
    held = _summed(total, node)
    parts = [total] if held is None else held.values
    if not all(_sums_means(m, node, each, means, trains=True) for each in parts):
        return False
    loader = _loader_of(means)
    if loader is None or not _is_size(m, value, loader):
        return False
    of_batches = _quotient(node) in _multiplied_by_batch_size(m.modules[-1].tree)
    if not of_batches and _is_read(m, node):
        m.emit(MeansOverSamples, node, loader=loader)
    return True


def _is_read(m: Interpreter, node: ast.AST) -> bool:
    """The function does something with the mean that it computes: `total /= n` may be its last
    word about the total."""
    if not isinstance(node, ast.AugAssign) or not isinstance(node.target, ast.Name) or not m.calls:
        return True
    loads = nodes_of(m.calls[-1][1], ast.Name)
    return any(
        each.id == node.target.id and each.lineno > node.lineno and isinstance(each.ctx, ast.Load)
        for each in loads
    )


def _quotient(node: ast.AST) -> str:
    """The name that the file has for the result of a division: the variable of `total /= n`, or the
    division itself."""
    return written(node.target if isinstance(node, ast.AugAssign) else node)


@once
def _multiplied_by_batch_size(tree: ast.Module) -> frozenset[str]:
    """The expressions of a file that it multiplies by a batch size, which makes the mean whole
    again: `print(test_loss * args.batch_size)`. Of a variable also what it is assigned."""
    found: set[str] = set()
    for node in nodes_of(tree, ast.BinOp):
        if isinstance(node.op, ast.Mult):
            for part, by in ((node.left, node.right), (node.right, node.left)):
                if _BATCH_SIZE.search(_name_of(by)):
                    found.add(written(part))
    assigned = nodes_of(tree, ast.Assign) if found else []
    found |= {written(each.value) for each in assigned if written(each.targets[0]) in found}
    return frozenset(found)


def _name_of(node: ast.expr) -> str:
    """`batch_size` of `args.batch_size` and of `config["batch_size"]`."""
    key = node.slice if isinstance(node, ast.Subscript) else None
    return str(key.value) if isinstance(key, ast.Constant) else last_name(node)


_BATCH_SIZE = re.compile(r"batch_?size|^bs$", re.I)


def _is_size(m: Interpreter, value: Unknown | Constant, loader: Loader) -> bool:
    """It is the number of samples that a loader goes through, in batches of several."""
    dataset = loader.attributes.get("dataset")
    if dataset is None or loader.open or not _has_several(m, loader):
        return False
    if isinstance(value, Constant):
        size = loader.dataset.size if loader.dataset is not None else None
        known = isinstance(size, int) and not value.loop_variant  # no count of the turns
        return known and value.value == size and size != loader.length
    if len(value.of) == 1 and isinstance(value.of[0], Loader):
        return False  # its batches, however its data set is called
    added = len(value.of) == 2 and _adds_lengths(m, value, loader)
    if added or value.key == f"len({m.key(dataset)})":
        return True
    own = dataset.cls.lookup("__len__") if isinstance(dataset, Dataset) and dataset.cls else None
    if not isinstance(own, Function):
        return False
    with aside(m):
        return value.key == m.key(m.call_value(Method(dataset, own), [], node=own.node))


def _has_several(m: Interpreter, loader: Loader) -> bool:
    """Its batches have several samples, at least in a run without options."""
    size = by_default(m, loader.batch_size)
    return size is not None and size > 1


def _adds_lengths(m: Interpreter, value: Value, loader: Loader, depth: int = _DEPTH) -> bool:
    """The lengths of a loader's batches, added up: `count += len(targets)`. A single one is
    the number of samples in a batch."""
    if isinstance(value, Constant):
        return bool(value.value == 0)
    if not isinstance(value, Unknown) or not depth:
        return False
    if len(value.of) == 2 and _is_sum(m, value):
        return all(_adds_lengths(m, each, loader, depth - 1) for each in value.of)
    part = value.of[0] if len(value.of) == 1 else None
    is_batch = isinstance(part, Tensor) and part.loader is loader
    return is_batch and value.key.startswith("len(")


def _counts_turns(value: object, means: list[Tensor]) -> bool:
    """It was counted while the loop ran, once for each term: `i + 1` after the loop, a counter."""
    if not isinstance(value, Constant) or not value.loop_variant:
        return False
    return type(value.value) is int and value.value == len(means) > 1


def _is_over(m: Interpreter, loader: Loader) -> bool:
    """The loop over the loader's batches."""
    return not any(turn.loop.loader is loader for turn in m.turns)


def _read_after(m: Interpreter, loader: Loader, node: ast.AST) -> bool:
    """`self.avg = self.sum / self.count` in a meter's `update`, which runs for each batch: the
    caller reads `losses.avg` when the loop is over."""
    call = call_at(m, len(m.calls)) if m.calls else None
    meter = call.func.value if call and isinstance(call.func, ast.Attribute) else None
    if call is None or not isinstance(meter, ast.Name):
        return False
    assigned = nodes_of(m.calls[-1][1], ast.Assign)
    kept = {last_name(each.targets[0]) for each in assigned if each.value is node}
    around = code_around(m, len(m.calls))
    line = next(turn.loop.place.line for turn in m.turns if turn.loop.loader is loader)
    loops = [each for each in nodes_of(around, ast.For) if each.lineno == line]
    return any(_holds(loop, call) for loop in loops) and any(
        each.attr in kept and written(each.value) == meter.id and not _holds(loops[0], each)
        for each in nodes_of(around, ast.Attribute)
    )


def _holds(loop: ast.For, node: ast.expr) -> bool:
    return loop.lineno <= node.lineno <= (loop.end_lineno or 0)


def notice_mean(m: Interpreter, tensor: Tensor, node: ast.AST) -> None:
    """`torch.stack(losses).mean()`, `torch.tensor(losses).mean()`."""
    terms = tensor.terms if tensor.terms is not None else next(iter(tensor.made_from), None)
    if not isinstance(terms, Sequence) or not terms.values:
        return
    _notice_mean_of(m, terms, node)


def _notice_mean_of(m: Interpreter, values: Sequence, node: ast.AST) -> None:
    """Inform the rules if the elements of a list are batch means from one loader."""
    means: list[Tensor] = []
    if all(_sums_means(m, node, each, means) for each in values.values):
        loader = _loader_of(means)
        if loader is not None:
            m.emit(Used, node, what="mean of batch means", subject=loader)


def _summed(total: Value, node: ast.AST) -> Sequence | None:
    """The list in `sum(losses) / len(losses)`."""
    held = total.of[0] if isinstance(total, Unknown) and len(total.of) == 1 else None
    if isinstance(held, Sequence) and held.values and isinstance(node, ast.BinOp):
        function = getattr(node.left, "func", None)
        if isinstance(function, ast.Name) and function.id == "sum":
            return held
    return None


def _counts_batches(m: Interpreter, value: object, loader: Loader, total: object) -> bool:
    """It is the number of the loader's batches, or the length of the list that was summed."""
    held = total.of[0] if isinstance(total, Unknown) and total.of else _holder(total)
    if isinstance(value, Unknown):
        names = [m.key(loader), *([m.key(held)] if isinstance(held, Sequence) else [])]
        return value.key in [f"len({name})" for name in names]
    if not isinstance(value, Constant) or not isinstance(value.value, int):
        return False
    if isinstance(held, Sequence) and held.length is not None:
        return value.value == held.length
    return loader.length is not None and value.value == loader.length


def _holder(total: object) -> Sequence | None:
    held = total.terms if isinstance(total, Tensor) else None
    return held if isinstance(held, Sequence) and not held.open else None


def _sums_means(
    m: Interpreter,
    node: ast.AST,
    value: Value,
    means: list[Tensor],
    depth: int = _DEPTH,
    *,
    trains: bool = False,
) -> bool:
    """The value is a sum of batch means and nothing else; notes these means."""
    m.look(node)
    if depth == 0:
        return False
    if isinstance(value, Constant):
        return value.value in (0, 0.0)
    if isinstance(value, Tensor):
        parts = value.terms.values if isinstance(value.terms, Sequence) else value.terms
        if isinstance(parts, (list, tuple)):
            return bool(parts) and all(
                _sums_means(m, node, each, means, depth - 1, trains=trains) for each in parts
            )
        return _is_mean(value, means, trains)
    if isinstance(value, Unknown):
        if len(value.of) == 1 and isinstance(value.of[0], Tensor):
            # A number out of a tensor: `.item()`, `float(...)`.
            return _sums_means(m, node, value.of[0], means, depth - 1, trains=trains)
        if len(value.of) == 1 and isinstance(value.of[0], Unknown) and value.of[0].key == value.key:
            return _sums_means(m, node, value.of[0], means, depth - 1, trains=trains)
        if _LEFT_OUT in value.attributes:  # times 1
            parts = [each for each in value.of if not isinstance(each, Constant)]
            return len(parts) == 1 and _sums_means(
                m, node, parts[0], means, depth - 1, trains=trains
            )
        if len(value.of) == 2 and _is_sum(m, value):
            return all(
                _sums_means(m, node, each, means, depth - 1, trains=trains) for each in value.of
            )
    return False


def _is_sum(m: Interpreter, value: Unknown) -> bool:
    a, b = (m.key(part) for part in value.of)
    return value.key in (f"({a} + {b})", f"({b} + {a})")


def _loader_of(means: list[Tensor]) -> Loader | None:
    """The one loader that gave the batches of these means. None if one statement computed several
    of them of one batch: they are means of its parts, or scores of single samples."""
    loaders = {each.loader for each in means}
    of_batches = [(each.fetched, each.made) for each in means if each.fetched]
    if len(loaders) != 1 or len(set(of_batches)) < len(of_batches):
        return None
    return loaders.pop()


def _is_mean(tensor: Tensor, means: list[Tensor], trains: bool) -> bool:
    """One number, the mean over a batch; that no gradient is wanted for, unless one may be."""
    mean = tensor.reduced == "mean" and tensor.divided is False
    mean = mean and (trains or tensor.graph is False)
    if not mean or tensor.loader is None:
        return False
    if tensor.is_loss and any(criterion.reduction != "mean" for criterion in tensor.criteria):
        return False
    means.append(tensor)
    return True


@calls("numpy.mean", "statistics.mean", "statistics.fmean")
def _mean(call: LibraryCall) -> Value:
    """The mean of a list of numbers."""
    values = call.arg(0)
    if isinstance(values, Sequence) and values.values and not values.open:
        _notice_mean_of(call.machine, values, call.node)
    return call.unknown(*call.args)
