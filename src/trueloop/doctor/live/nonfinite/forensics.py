"""Where values that are not finite began: found out by making the calls of an update again."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import torch
from torch import nn

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.nonfinite import singular_operations
from trueloop.doctor.live.nonfinite.operation_trace import (
    Operation,
    OperationTrace,
    Source,
    TracedValue,
    kind_of_bad,
)
from trueloop.doctor.live.nonfinite.rerun import Again, Rerun, call_on, gradients, untouched
from trueloop.doctor.live.objects import autograd_graph
from trueloop.doctor.live.probes import parameter_stats
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import NonFiniteOrigin

if TYPE_CHECKING:
    from collections import deque

    from trueloop.doctor.live.context import Context
    from trueloop.doctor.live.nonfinite.recent_calls import Call, RecentCalls

_NAMED = 8
_OVERFLOWS = ("addmm", "mm", "bmm", "convolution", "linear", "mul", "pow", "add", "sub", "baddbmm",
              "mse_loss", "exp", "sum", "mean")  # fmt: skip


class Found:
    """The first bad value: plain values for the rule, and the trace for a bundle."""

    def __init__(self, origin: NonFiniteOrigin) -> None:
        self.origin = origin
        self.tape: OperationTrace | None = None
        self.rng: tuple[Any, ...] | None = None


class Monitor(Protocol):
    """The questions to the monitor that has met a value."""

    watcher: Context
    calls: RecentCalls
    recent: deque[float]
    norm: float | None


def of_loss(
    monitor: Monitor, calls: list[Call], loss: torch.Tensor, indices: Sequence[Any], place: Location
) -> Found:
    """Why a loss is not finite, before its backward, which is at `place`."""
    kind = kind_of_bad(loss.detach())
    found = Found(NonFiniteOrigin(what="loss", kind=kind))
    with untouched(monitor.calls):
        rerun = Rerun(grad=False)
        for call in calls:
            again = _made(rerun, call)
            if again is not None and any(kind_of_bad(each) for each in again.outputs):
                began = rerun.tape.origin(again.ends, kind)
                if began is not None:
                    _describe(found, began, again, indices)
                    break
        found.tape = rerun.tape
        found.rng = next((call.rng for call in calls if call.rng is not None), None)
        if not found.origin.cause:
            _in_the_open(found, loss, place)
        _explosion(monitor, found, calls)
    return found


def of_gradient(
    monitor: Monitor,
    calls: list[Call],
    names: Sequence[str],
    loss: torch.Tensor | None,
    indices: Sequence[Any],
) -> Found:
    """Why gradients are not finite although the loss is, after its backward."""
    found = Found(
        NonFiniteOrigin(
            what="gradient", kind="NaN", gradients=list(names)[:_NAMED], count=len(names)
        )
    )
    with untouched(monitor.calls):
        for call in reversed(calls):
            rerun = Rerun(grad=True)
            torch.autograd.set_detect_anomaly(True, check_nan=False)
            again = _made(rerun, call)
            if again is None:
                continue
            taken = gradients(rerun, again)
            bad = [each for _, each in taken if kind_of_bad(each)]
            if not bad:
                continue
            kinds = {kind_of_bad(each) for each in bad}
            kind = "NaN" if "NaN" in kinds else "inf"
            began = rerun.tape.origin([rerun.tape.index_of(each) for each in bad], kind)
            found.origin.kind = kind
            found.tape, found.rng = rerun.tape, call.rng
            if isinstance(began, Operation):
                _describe(found, began, again, indices)
                origin = found.origin
                origin.cause, origin.node = "backward", began.node
                origin.module = _module_of(rerun.tape, began)
                origin.line = began.forward or origin.line
                return found
        names_there = singular_operations.in_graph(loss)
        if names_there:
            origin = found.origin
            origin.cause, origin.node, origin.loose = "backward", names_there[0], True
    return found


def _made(rerun: Rerun, call: Call) -> Again | None:
    try:
        return rerun.make(call)
    except Exception:  # whatever the program's code raises when it is called by itself
        return None


# ---------------------------------------------------------------------- in words


def _describe(
    found: Found, began: Operation | TracedValue, again: Again, indices: Sequence[Any]
) -> None:
    origin = found.origin
    origin.call = again.call.place if again.call.is_users else None
    origin.model = type(again.call.function).__name__ if again.module is not None else (
        getattr(again.call.function, "__name__", "")
    )  # fmt: skip
    if isinstance(began, TracedValue):
        _describe_value(origin, began, again, indices)
        return
    origin.cause = "operation"
    origin.operation = began.name.removesuffix(".default")
    origin.makes = began.bad
    origin.module, origin.module_kind = began.module, began.kind
    origin.line = began.place or origin.call
    origin.in_module = again.module is not None
    origin.inputs_bad = [each for each in began.inputs_bad if each]
    origin.detail = _detail(again.tape, began)
    rows = again.tape.values[began.outputs[0]].rows if began.outputs else ()
    whole = again.tape.values[began.outputs[0]].size if began.outputs else ()
    if rows and indices and whole and whole[0] == len(indices):
        _name_rows(origin, rows, indices)
    elif rows and _batch_size(again) == whole[0]:
        _name_rows(origin, rows, ())


def _describe_value(
    origin: NonFiniteOrigin, began: TracedValue, again: Again, indices: Sequence[Any]
) -> None:
    source = began.source or Source("constant", "")
    origin.cause, origin.name, origin.makes = source.kind, source.name, began.bad
    origin.line = origin.call
    if source.kind == "input":
        rows = began.rows
        fits = bool(indices) and bool(began.size) and began.size[0] == len(indices)
        _name_rows(origin, rows, indices if fits else ())


def _name_rows(origin: NonFiniteOrigin, rows: Sequence[int], indices: Sequence[Any]) -> None:
    origin.rows = list(rows[:_NAMED])
    origin.rows_count = len(rows)
    origin.samples = [indices[row] for row in rows[:_NAMED]] if indices else []


def _batch_size(again: Again) -> int | None:
    first = next(autograd_graph.tensors_in((again.call.args, again.call.kwargs)), None)
    return None if first is None or first.dim() == 0 else int(first.shape[0])


def _module_of(tape: OperationTrace, began: Operation) -> str:
    """The module whose backward it is: the one that computed the same line forward."""
    for each in tape.operations:
        if not each.node and each.place is not None and each.place[:2] == (
            (began.forward or Location("", 0))[:2]
        ):  # fmt: skip
            return each.module
    return ""


def _detail(tape: OperationTrace, began: Operation) -> str:
    """The property of its arguments that causes it."""
    name = began.name.split(".")[1] if "." in began.name else began.name
    data = [tape.kept(each) for each in began.inputs]
    return singular_operations.reason(name, data, began.args)


# ---------------------------------------------------------------------- other places


def _in_the_open(found: Found, loss: torch.Tensor, place: Location) -> None:
    """The calls give finite numbers, or there are none: it is in what the program computes from
    them itself. What autograd has saved for the backward says where."""
    began = singular_operations.in_saved(loss)
    if began is None:
        return
    origin = found.origin
    origin.cause, origin.operation = "operation", f"aten.{began.operation}"
    origin.detail, origin.line = began.reason, _only_line(place, began.operation)
    origin.model, origin.module, origin.module_kind = "", "", ""
    origin.makes, origin.in_module, origin.inputs_bad = origin.kind, False, []
    if began.rows:
        _name_rows(origin, began.rows, ())
    if began.again is not None and found.tape is not None:
        found.tape.inside.clear()
        call_on(found.tape, began.again, (), {})


def _only_line(place: Location, operation: str) -> Location | None:
    """The one expression of a function, or else of its file, that may be this operation."""
    tree = source_map.source_of(place.path).tree
    if tree is None:
        return None
    name = operation.strip("_")
    functions = [
        each for each in ast.walk(tree)
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
        and each.lineno <= place.line <= (each.end_lineno or 0)
    ]  # fmt: skip
    for scope in (*reversed(functions), tree):
        matches = [each for each in ast.walk(scope) if _may_be(each, name)]
        if len(matches) == 1:
            at = matches[0]
            return Location(
                place.path, at.lineno, at.col_offset + 1, at.end_lineno or 0,
                (at.end_col_offset or 0) + 1,
            )  # fmt: skip
        if matches:
            return None
    return None


def _may_be(node: ast.AST, name: str) -> TypeGuard[ast.expr]:
    if isinstance(node, ast.BinOp):
        return name in ("div", "reciprocal") and isinstance(node.op, ast.Div)
    if not isinstance(node, ast.Call):
        return False
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return called == name or (name == "div" and called in ("divide", "true_divide"))


def _explosion(monitor: Monitor, found: Found, calls: list[Call]) -> None:
    """Numbers have grown beyond what there is, update by update."""
    origin, recent = found.origin, list(monitor.recent)
    origin.recent = recent[-4:]
    rates = (parameter_stats.rates(each) for each in monitor.watcher.things.live_optimizers())
    origin.lr = max(itertools.chain.from_iterable(rates), default=None)
    largest = ("", 0.0)
    for call in calls:
        if isinstance(call.function, nn.Module):
            for name, each in call.function.named_parameters():
                if each.is_floating_point() and each.numel():
                    size = float(parameter_stats.local(each).abs().amax())
                    largest = (name, size) if size > largest[1] else largest
    origin.largest, origin.largest_size = largest
    origin.norm = monitor.norm
    grown = len(recent) > 1 and abs(recent[-1]) > 1e3 * max(abs(recent[0]), 1e-3)
    operation = origin.operation.split(".")[1] if origin.operation else ""
    overflows = origin.cause == "operation" and operation in _OVERFLOWS
    if (overflows or not origin.cause) and (grown or largest[1] > 1e8):
        origin.explosion = True


def which_are_bad(pairs: Sequence[tuple[str, Any]]) -> list[str]:
    """Names of the tensors that are not finite."""
    return [name for name, each in pairs if each is not None and kind_of_bad(each.detach())]
