"""Follows a value through the source of the functions that are being called, up to a loss that has
it as a term."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FrameType
from typing import Any

from torch import nn

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.frames.live_expressions import UNKNOWN, FrameNames, value_of
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.model.findings import Location

Part = Any
"""An expression's part in a sum: `CONSTANT`, `SUM`, a list of such (a tuple's), or None."""
CONSTANT = "constant"
"""Computed from the value, and from numbers and tensors without a graph."""
SUM = "sum"
"""A sum of that and of something else, or what was computed from such a sum."""
_FRAMES = 6
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_ENDS = frozenset(
    "detach detach_ item tolist numpy cpu size dim numel argmax argmin backward".split()
)
"""Methods after which a value is outside of the loss, or a constant on purpose."""
_CALLS_BACKWARD = ("backward", "manual_backward")
_PLAIN = (int, float, bool, str, type(None))


def sums_with(frame: FrameType) -> list[Location]:
    """The places of calls of `backward` on a sum that has the result of the call which `frame` is
    at as a term."""
    found: list[Location] = []
    given: Part = CONSTANT
    source: ast.Call | None = None
    for number, each in enumerate(user_frames.frames_of_user(frame)):
        code = each.f_code
        file = source_map.source_of(code.co_filename)
        place = user_frames.place_at(code, each.f_lasti, each.f_lineno or 0)
        source = source or file.call_at(place)
        if source is None or file.tree is None or number == _FRAMES:
            break
        if code.co_name in _COMPREHENSIONS:
            continue  # the function around it goes through it
        names = FrameNames(each)
        flow = _Flow(names.named, source, given)
        body = _function_around(file.tree, source)
        for _ in range(2):  # what a turn of a loop leaves for the next one
            flow.run(body)
        names.forget()
        found += [_place(place, call) for call in flow.backwards]
        given, source = flow.returned, None
        if given is None:
            break
    return found


def _function_around(tree: ast.Module, call: ast.Call) -> list[ast.stmt]:
    around = (
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= call.lineno <= (node.end_lineno or 0)
    )
    inner = max(around, key=lambda node: node.lineno, default=tree)
    return inner.body


def _place(near: Location, call: ast.Call) -> Location:
    end = (call.end_lineno or call.lineno, (call.end_col_offset or 0) + 1)
    return Location(near.path, call.lineno, call.col_offset + 1, *end, near.function)


class _Flow:
    """One function, statement by statement; both branches of a condition are gone through."""

    def __init__(self, named: Callable[[str], Any], source: ast.Call, given: Part) -> None:
        self._named, self._source, self._given = named, source, given
        self._parts: dict[str, Part] = {}
        self.returned: Part = None
        self.backwards: set[ast.Call] = set()

    def run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            part = self._part(node.value)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._bind(target, part)
        elif isinstance(node, ast.AugAssign):
            sum_of = ast.BinOp(node.target, node.op, node.value)
            self._bind(node.target, self._part(sum_of))
        elif isinstance(node, ast.Return) and node.value is not None:
            self.returned = self._part(node.value) or self.returned
        elif isinstance(node, ast.Expr):
            self._part(node.value)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._bind(node.target, self._part(node.iter))
        for name in ("body", "orelse", "finalbody"):
            self.run(getattr(node, name, []))
        for handler in getattr(node, "handlers", []):
            self.run(handler.body)

    def _bind(self, target: ast.expr, part: Part) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            apart = isinstance(part, list) and len(part) == len(target.elts)
            for position, each in enumerate(target.elts):
                self._bind(each, part[position] if apart else _any(part))
        else:
            self._parts[ast.unparse(target)] = part

    def _part(self, node: ast.expr) -> Part:
        if node is self._source:
            return self._given
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return self._named_part(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node)
        if isinstance(node, ast.UnaryOp):
            return None if isinstance(node.op, ast.Not) else self._part(node.operand)
        if isinstance(node, (ast.Tuple, ast.List)):
            return [self._part(each) for each in node.elts]
        if isinstance(node, ast.IfExp):
            return self._part(node.body) or self._part(node.orelse)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            for each in node.generators:
                self._bind(each.target, _any(self._part(each.iter)))
            return self._part(node.elt)
        return None

    def _named_part(self, node: ast.Name | ast.Attribute | ast.Subscript) -> Part:
        written = ast.unparse(node)
        if written in self._parts:
            return self._parts[written]
        if isinstance(node, ast.Subscript):
            part = self._part(node.value)
            index = getattr(node.slice, "value", None)
            if isinstance(part, list) and isinstance(index, int) and index < len(part):
                return part[index]
            return _any(part)
        if isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "real"):
            return self._part(node.value)
        return None

    def _arithmetic(self, node: ast.BinOp) -> Part:
        sides = [_any(self._part(side)) for side in (node.left, node.right)]
        if SUM in sides:
            return SUM
        if CONSTANT not in sides:
            return None
        if all(
            part or self._is_constant(side)
            for part, side in zip(sides, (node.left, node.right), strict=True)
        ):
            return CONSTANT
        return SUM if isinstance(node.op, (ast.Add, ast.Sub)) else None

    def _is_constant(self, node: ast.expr) -> bool:
        """A number, or a tensor without a graph."""
        if isinstance(node, ast.BinOp):
            return self._is_constant(node.left) and self._is_constant(node.right)
        if isinstance(node, ast.UnaryOp):
            return self._is_constant(node.operand)
        found = value_of(node, self._named)
        if inspection.is_tensor(found):
            return not found.requires_grad
        return type(found) in _PLAIN

    def _call(self, node: ast.Call) -> Part:
        function = node.func
        given = [_any(self._part(each)) for each in _arguments(node)]
        receiver = None
        if isinstance(function, ast.Attribute):
            receiver = _any(self._part(function.value))
            if function.attr in _CALLS_BACKWARD and SUM in (receiver, *given[:1]):
                self.backwards.add(node)
            if receiver:
                return None if function.attr in _ENDS else receiver
            if function.attr == "scale":  # by a gradient scaler
                return given[0] if given else None
        if not any(given):
            return None
        if SUM in given:
            return SUM if self._is_torch(function) else None
        if isinstance(function, ast.Name) and function.id == "sum":
            return self._sum_of(node.args[0])
        whole = self._is_torch(function) and all(
            part or self._is_constant(each) or isinstance(each, (ast.List, ast.Tuple))
            for part, each in zip(given, _arguments(node), strict=True)
        )
        if whole and len(node.args) and isinstance(node.args[0], (ast.List, ast.Tuple)):
            return self._sum_of(node.args[0])  # `torch.stack([loss, penalty])`
        return CONSTANT if whole else None

    def _sum_of(self, node: ast.expr) -> Part:
        if not isinstance(node, (ast.List, ast.Tuple)):
            return _any(self._part(node))
        parts = [_any(self._part(each)) for each in node.elts]
        whole = all(
            part == CONSTANT or (part is None and self._is_constant(each))
            for part, each in zip(parts, node.elts, strict=True)
        )
        return CONSTANT if whole else SUM

    def _is_torch(self, function: ast.expr) -> bool:
        """A function of torch's, or a loss of `torch.nn`."""
        found = value_of(function, self._named)
        if found is UNKNOWN or not isinstance(function, (ast.Name, ast.Attribute)):
            return False
        kind = type(found) if inspection.is_a(found, nn.Module) else found
        home = str(getattr(kind, "__module__", "") or "")
        if inspection.is_a(found, nn.Module):
            return home == "torch.nn.modules.loss"
        is_method = isinstance(found, BuiltinFunctionType) and found.__name__ in vars(nn.functional)
        return is_method or home.partition(".")[0] == "torch" or _is_of_torch(found)


def _is_of_torch(function: object) -> bool:
    owner = getattr(function, "__self__", None)
    return isinstance(function, BuiltinFunctionType) and "torch" in str(type(owner))


def _arguments(node: ast.Call) -> Iterator[ast.expr]:
    yield from node.args
    yield from (each.value for each in node.keywords)


def _any(part: Part) -> Part:
    """The part of a whole tuple."""
    if isinstance(part, list):
        inside = [_any(each) for each in part]
        return SUM if SUM in inside else CONSTANT if CONSTANT in inside else None
    return part
