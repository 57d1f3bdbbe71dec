"""Operations that give no finite numbers, and what about their arguments does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from trueloop.doctor.live.nonfinite.operation_trace import bad_rows, kind_of_bad

_NODES = 5_000
_LOGARITHMS = {"Log": "log", "Log2": "log2", "Log10": "log10", "Log1P": "log1p"}
_STEEP = ("Sqrt", "Rsqrt", "Pow", "Log", "Div", "Std", "Var", "Norm", "Acos", "Asin", "Atan2",
          "Reciprocal", "LinalgVectorNorm", "Cdist", "PairwiseDistance")  # fmt: skip


def reason(name: str, inputs: list[Any], args: list[Any]) -> str:
    """`its input contains zeros`: of an operation of aten, by its arguments."""
    name = name.rstrip("_")
    known = [each for each in inputs if isinstance(each, torch.Tensor)]
    first = known[0] if known else None
    second = known[1] if len(known) > 1 else None
    if name in ("log", "log2", "log10") and first is not None:
        return _zero_or_below(first, "0", "a negative number")
    if name == "log1p" and first is not None:
        return _zero_or_below(first + 1, "-1", "a number below -1")
    if name in ("sqrt", "rsqrt") and first is not None:
        return _zero_or_below(first, "0", "a negative number")
    if name in ("div", "reciprocal"):
        below = first if name == "reciprocal" else second
        if below is not None and bool((below == 0).any()):
            over = first if name == "div" and first is not None else None
            both = over is not None and bool(((over == 0) & (below == 0)).any())
            return "0 is divided by 0" if both else "it divides by 0"
    if "softmax" in name and first is not None:
        return _masked(first, args)
    if first is not None and first.dtype == torch.float16:
        return "the result is larger than 65504, the largest number of float16"
    return ""


def _zero_or_below(tensor: torch.Tensor, zero: str, negative: str) -> str:
    if bool((tensor < 0).any()):
        return f"its input contains {negative}"
    return f"its input contains {zero}" if bool((tensor == 0).any()) else ""


def _masked(tensor: torch.Tensor, args: list[Any]) -> str:
    dim = next((each for each in args if isinstance(each, int)), -1)
    if not tensor.dim() or not -tensor.dim() <= dim < tensor.dim():
        return ""
    whole = tensor.isneginf().all(dim)
    count = int(whole.sum())
    if not count:
        return ""
    where = whole.nonzero()[0].tolist()
    return f"{count} of {whole.numel()} rows are masked whole, the first at {where}"


# ---------------------------------------------------------------------- from the graph alone


class Began(NamedTuple):
    """An operation that gives no finite numbers."""

    operation: str
    reason: str
    rows: tuple[int, ...]
    again: Callable[[], Any] | None
    """Carries it out again, where its arguments are known."""


def in_saved(loss: torch.Tensor) -> Began | None:
    """The operation farthest from the loss that is not finite, by what autograd has saved of
    it."""
    best: tuple[int, Began] | None = None
    seen: set[Any] = set()
    waiting = [(loss.grad_fn, 0)]
    while waiting and len(seen) < _NODES:
        node, depth = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        found = _judged(node)
        if found is not None and (best is None or depth > best[0]):
            best = depth, found
        waiting += [(each, depth + 1) for each, _ in node.next_functions]
    return None if best is None else best[1]


def _judged(node: Any) -> Began | None:
    name = str(node.name()).rpartition("::")[2].partition("Backward")[0]
    given, other = _saved(node, "self"), _saved(node, "other")
    result = _saved(node, "result")
    if name in _LOGARITHMS and given is not None and not kind_of_bad(given):
        operation = _LOGARITHMS[name]
        bad, why = getattr(given, operation)(), reason(operation, [given], [])
        if kind_of_bad(bad):
            return Began(operation, why, bad_rows(bad), lambda: getattr(given, operation)())
    if name in ("Div", "Reciprocal") and other is not None and not kind_of_bad(other):
        over = other + 1 if given is None else given
        if bool((other == 0).any()):
            why, rows = reason("div", [over, other], []), bad_rows(over / other)
            return Began("div", why, rows, lambda: over / other)
    if result is not None and kind_of_bad(result) and not _from_bad(node):
        operation = {"LogSoftmax": "_log_softmax", "Softmax": "_softmax"}.get(name, name.lower())
        why = "its input contains a negative number" if name == "Sqrt" else ""
        return Began(operation, why, bad_rows(result), None)
    return None


def _from_bad(node: Any) -> bool:
    """Something that it is computed from is known to be not finite already."""
    before = (each for each, _ in node.next_functions if each is not None)
    return any(
        kind_of_bad(value)
        for each in before
        for value in (_saved(each, "result"), _saved(each, "self"))
        if value is not None
    )


def _saved(node: Any, name: str) -> Any:
    try:
        value = getattr(node, f"_saved_{name}", None)
    except RuntimeError:  # let go of already, or changed in place
        return None
    return value.detach() if isinstance(value, torch.Tensor) else None


def in_graph(loss: torch.Tensor | None) -> list[str]:
    """Operations below a loss whose slope may be infinite, and functions of the program's own."""
    found: list[str] = []
    seen: set[Any] = set()
    waiting = [] if loss is None else [loss.grad_fn]
    while waiting and len(seen) < _NODES:
        node = waiting.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        name = str(node.name()).rpartition("::")[2]
        if name.partition("Backward")[0] in _STEEP and name not in found:
            found.append(name)
        waiting += [each for each, _ in node.next_functions]
    return found
