"""Losses that are written by hand, read from the graph between a backward and its models.

A node of the graph knows the shapes of what it gives and of what it was given with a graph. The
other side (a target) is known by its shape: it is a part of the batch, or a variable of the
program.
"""

from __future__ import annotations

import ast
import threading
from collections import Counter
from functools import lru_cache
from math import prod
from types import FrameType
from typing import TYPE_CHECKING, TypeGuard

import torch

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.frames.live_expressions import FrameNames, value_of
from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.live.probes.retained_graphs import let_go
from trueloop.doctor.model.events import BatchFetched
from trueloop.doctor.model.loss_measurements import BroadcastDifference, HandwrittenSoftmax
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueloop.doctor.live.context import Context
    from trueloop.doctor.live.objects.autograd_graph import GraphNode
    from trueloop.doctor.model.events import Event
    from trueloop.doctor.model.findings import Location

Shape = tuple[int, ...]
_WALKS = 12
"""Losses that are looked through at one place."""
_NODES = 200
_FRAMES = 3
"""Frames of the program whose variables are looked at."""
_RESHAPES = frozenset("unsqueeze view reshape expand expand_as T mT t transpose".split())
_WORDS = ("Log", "Neg", "Add", "Clamp", "ClampMin", "Mul", "Exp")
"""Operations between a softmax and what picks each sample's class."""


class ByHand(Probe):
    """Two sides of a difference or a product that have met as a square, and a softmax over the
    samples of a batch."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._batches: dict[int, set[Shape]] = {}
        self._walked: Counter[Location] = Counter()

    def fetched(self, batch: object, event: Event) -> None:
        assert isinstance(event, BatchFetched)
        shapes = {tuple(each.shape) for each in autograd_graph.tensors_in(batch)}
        self._batches[threading.get_ident()] = shapes

    def before_backward(self, tensors: object, event: Event, frame: FrameType) -> None:
        loss = autograd_graph.first_in(tensors)
        self._walked[event.place] += 1
        if loss is None or self._walked[event.place] > _WALKS:
            return
        shapes = None
        for node, above in _between(loss):
            if not _may_broadcast(node) and not _is_softmax(node):
                continue
            if shapes is None:
                shapes = self._batches.get(threading.get_ident(), set()) | _variables(frame)
            found = (
                _broadcast(node, shapes)
                or _over_batch(node, above, shapes)
                or _broadcast(node, shapes, taken_in=frame)
            )
            if found is not None:
                found.at(event)
                made = node.metadata.get(autograd_graph.MADE)
                if isinstance(found, HandwrittenSoftmax) and made is not None and made.line:
                    found.place = made
                self.watcher.measure(found)
                return


def _between(loss: torch.Tensor) -> Iterator[tuple[GraphNode, list[GraphNode]]]:
    """The nodes of a loss that are inside of no model, each with those that use it, nearest
    last."""
    waiting: list[tuple[GraphNode | None, list[GraphNode]]] = [(autograd_graph.node_of(loss), [])]
    seen: dict[int, GraphNode] = {}
    while waiting and len(seen) < _NODES:
        node, above = waiting.pop()
        if node is None or id(node) in seen:
            continue
        seen[id(node)] = node
        noted = node.metadata.get(autograd_graph.NOTE)
        if noted is not None and not noted.is_loss:
            # Inside of a model it may have many reasons; what comes out is a softmax or is not.
            if _is_softmax(node):
                yield node, above
            continue
        yield node, above
        waiting += [(each, [*above[-6:], node]) for each, _ in node.next_functions]


def _variables(frame: FrameType) -> set[Shape]:
    """The shapes of tensors without a graph that variables of the program have now."""
    found = set[Shape]()
    for each, _ in zip(user_frames.frames_of_user(frame), range(_FRAMES), strict=False):
        variables = each.f_locals
        for value in list(variables.values()):
            for tensor in autograd_graph.tensors_in(value, 1):
                if not tensor.requires_grad:
                    found.add(tuple(tensor.shape))
        let_go(each, variables)
    return found


# ---------------------------------------------------------------------- shapes that broadcast


def _may_broadcast(node: GraphNode) -> bool:
    return autograd_graph.name_of(node) in ("Sub", "Rsub", "Mul") and len(node._input_metadata) == 1


def _broadcast(
    node: GraphNode, shapes: set[Shape], taken_in: FrameType | None = None
) -> BroadcastDifference | None:
    """A difference or product of a prediction and a target that is larger than both.

    With `taken_in` the target may have no name: `net(x[a:b]) - y[a:b]`.
    """
    if not _may_broadcast(node):
        return None
    whole = tuple(node._input_metadata[0].shape)
    sides = [
        (index, each, _shape_of(each, position))
        for index, (each, position) in enumerate(node.next_functions)
        if each is not None
    ]
    known = [shape for _, _, shape in sides if shape]
    if len(known) != len(sides) or not whole or whole[0] < 2:
        return None
    if any(_is_expanded(each, shape) for _, each, shape in sides):
        return None
    if len(known) == 2 and not _same_source(sides[0][1], sides[1][1]):
        first, second = known
        if meets_all(first, second) and joined(first, second) == whole:
            return BroadcastDifference(input=first, target=second)
    if len(known) != 1:
        return None
    side = known[0]
    if taken_in is not None:
        shapes = shapes | _taken(taken_in, whole[-1])
    for other in shapes:
        if len(other) == len(side) and joined(side, other) == whole:
            return None  # (N, 1) and (1, N): all pairs on purpose
    others = [each for each in shapes if meets_all(side, each) and joined(side, each) == whole]
    return BroadcastDifference(input=side, target=others[0]) if others else None


def _shape_of(node: GraphNode, position: int) -> Shape:
    found = node._input_metadata
    return tuple(found[position].shape) if position < len(found) else ()


def _is_expanded(node: GraphNode, shape: Shape) -> bool:
    """The program has given it a dimension on purpose: `scores[:, None]`."""
    name = autograd_graph.name_of(node)
    before: Shape = ()
    if node.next_functions and node.next_functions[0][0] is not None:
        before = _shape_of(node.next_functions[0][0], node.next_functions[0][1])
    return name == "Unsqueeze" or (name in ("View", "ReshapeAlias") and len(before) < len(shape))


def _same_source(first: GraphNode, second: GraphNode) -> bool:
    """Both sides come from one output of a model: pairs of its rows."""
    sources = [_noted(first), _noted(second)]
    return sources[0] is not None and sources[0] is sources[1]


def _noted(start: GraphNode) -> Tensor | None:
    node: GraphNode | None = start
    for _ in range(8):
        if node is None:
            return None
        noted = node.metadata.get(autograd_graph.NOTE)
        if noted is not None:
            assert isinstance(noted, Tensor)
            return noted
        node = next((each for each, _ in node.next_functions if each is not None), None)
    return None


def meets_all(first: Shape, second: Shape) -> bool:
    """One is the other with a dimension of 1 more, and together they are larger."""
    if abs(len(first) - len(second)) != 1 or prod(first) != prod(second):
        return False
    longer, shorter = sorted((first, second), key=len, reverse=True)
    same = any(
        size == 1 and longer[:at] + longer[at + 1 :] == shorter
        for at, size in enumerate(longer)
        if at
    )
    whole = joined(first, second)
    return same and whole is not None and prod(whole) > prod(first)


def joined(first: Shape, second: Shape) -> Shape | None:
    """The shape that two broadcast to."""
    length = max(len(first), len(second))
    one, other = ((1,) * (length - len(each)) + each for each in (first, second))
    pairs = list(zip(one, other, strict=True))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        return None
    return tuple(max(pair) for pair in pairs)


def _taken(frame: FrameType, rows: int) -> set[Shape]:
    """The shape of so many numbers, where a difference or a product in the program's source has a
    stretch of a longer vector, or numbers picked by so many indices, as one side. None where any
    side is given dimensions: all pairs may be meant."""
    for each, _ in zip(user_frames.frames_of_user(frame), range(_FRAMES), strict=False):
        sides = _sides(each.f_code.co_filename)
        if not sides:
            continue
        names = FrameNames(each)
        try:
            if any(_takes(side, rows, names) for side in sides):
                return {(rows,)}
        finally:
            names.forget()
    return set()


@lru_cache(maxsize=512)
def _sides(path: str) -> tuple[ast.expr, ...]:
    """The sides of a file's differences and products; none where any of them is reshaped."""
    found: list[ast.expr] = []
    for node in source_map.source_of(path).nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.Mult)):
            found += node.left, node.right
    return () if any(map(_is_reshaped, found)) else tuple(found)


def _is_reshaped(side: ast.expr) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr in _RESHAPES)
        or (isinstance(node, ast.Subscript) and _has_none(node.slice))
        for node in walk(side)
    )


def _has_none(index: ast.expr) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(part, ast.Constant) and part.value is None for part in parts)


def _takes(side: ast.expr, rows: int, names: FrameNames) -> bool:
    if not isinstance(side, ast.Subscript):
        return False
    vector = value_of(side.value, names.named)
    if not _is_vector(vector) or vector.requires_grad or len(vector) < rows:
        return False
    if isinstance(side.slice, ast.Slice):
        return True
    picked = value_of(side.slice, names.named)
    return _is_vector(picked) and len(picked) == rows and not picked.is_floating_point()


def _is_vector(value: object) -> TypeGuard[torch.Tensor]:
    return inspection.is_a(value, torch.Tensor) and value.ndim == 1


# ---------------------------------------------------------------------- softmax over the samples


def _is_softmax(node: GraphNode) -> bool:
    return autograd_graph.name_of(node) in ("Softmax", "LogSoftmax")


def _over_batch(
    node: GraphNode, above: list[GraphNode], shapes: set[Shape]
) -> HandwrittenSoftmax | None:
    """A softmax over the rows of a batch, of whose result a class is picked for each row."""
    if not _is_softmax(node):
        return None
    shape = tuple(node._input_metadata[0].shape)
    dim = autograd_graph.dimension_of(node)
    if len(shape) != 2 or dim not in (0, -2) or shape[0] == shape[1] or min(shape) < 2:
        return None
    if not {shape[:1], (shape[0], 1), shape} & shapes:
        return None
    for each in reversed(above):
        name = autograd_graph.name_of(each)
        made = tuple(each._input_metadata[0].shape)
        if name == "Gather" and autograd_graph.dimension_of(each) in (1, -1):
            picks = made[0] == shape[0]
        elif name == "Index":
            picks = made == shape[:1]
        elif name == "Sum":
            picks = made == shape[:1] and shape in shapes and _multiplied(above)
        elif name in _WORDS and made == shape:
            continue
        else:
            return None
        if picks:
            kind = "softmax" if autograd_graph.name_of(node) == "Softmax" else "log_softmax"
            return HandwrittenSoftmax(kind=kind, shape=(shape[0], shape[1]))
        return None
    return None


def _multiplied(above: list[GraphNode]) -> bool:
    """By a tensor without a graph: the targets, one for each class."""
    return any(
        autograd_graph.name_of(each) == "Mul"
        and sum(inner is not None for inner, _ in each.next_functions) == 1
        for each in above
    )
