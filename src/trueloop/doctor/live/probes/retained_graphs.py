"""Graphs that live on although their backward is done, and the variable that keeps them.

Every graph that goes into an update gets a sentinel, which its nodes keep alive. Where those of
several updates in a row are still there, the variables of the frames on the stack are searched.
What is found may be emptied when the epoch ends: so the first of these graphs is followed from
there on, until it has outlived the epoch or many updates.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.probes import append_sites
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Event
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import MANY_GRAPHS, GraphsRetained
from trueloop.doctor.model.things import Turn

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context

_NOTE = "trueloop kept"
_ROW = 4
"""Updates in a row, before the current one, whose graphs live on."""
_VISITS = 20_000
_NODES = 5_000
_OPTIMIZED = 0x1
_SKIPPED = ("_parameters", "_buffers", "_modules")


class Sentinel:
    """Lives as long as the graph that it is noted on."""

    number: int | None = None
    """The update that the graph went into."""


class GraphOwner(NamedTuple):
    """A variable, or something below one, that keeps graphs of several updates."""

    frame: Any
    spelled: str
    owner: str
    """How the object is spelled whose attribute it is, or the function that remembers it; empty
    for a variable."""
    kind: type | None
    """Of that object."""
    attribute: str
    how: str
    size: int
    code: CodeType | None = None
    """The function whose `nonlocal` variable it is."""


class FollowedGraph(NamedTuple):
    """The first graph that something was found to keep."""

    found: GraphsRetained
    sentinels: list[Any]
    """Weakly."""
    update: int
    epoch: Turn | None

    def lives(self) -> bool:
        return any(reference() is not None for reference in self.sentinels)

    def stays(self, update: int, epoch: Turn | None) -> bool:
        """The epoch is over, or many updates are."""
        return self.epoch != epoch or update - self.update >= MANY_GRAPHS


class RetainedGraphs(Probe):
    """Counts the graphs that outlive their updates."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._pending: deque[tuple[int, Any]] = deque(maxlen=256)
        """Of forwards whose gradient was not taken: serial numbers and sentinels, weakly."""
        self._done: list[tuple[int, Any]] = []
        self._updates: deque[list[tuple[int, Any]]] = deque(maxlen=64)
        self._number = 0
        self._suspects: dict[str, int] = {}
        self._followed: FollowedGraph | None = None
        self._reported = False

    def after_forward(self, module: nn.Module, given: Any, output: object, event: Event) -> None:
        if event.grad:
            for each in autograd_graph.tensors_in(output):
                self._note(each, event.serial, self._pending)

    def _note(self, tensor: torch.Tensor, serial: int, where: Any) -> None:
        node = autograd_graph.node_of(tensor)
        if node is not None:
            sentinel = Sentinel()
            node.metadata[_NOTE] = sentinel
            where.append((serial, weakref.ref(sentinel)))

    def before_backward(self, tensors: object, event: Event, frame: FrameType) -> None:
        loss = getattr(event, "loss", None)
        through = loss.forwards if loss is not None else frozenset()
        # What goes back once more is of use.
        for update in self._updates:
            update[:] = [each for each in update if each[0] not in through]
        mine = [each for each in self._pending if each[0] in through]
        for each in mine:
            self._pending.remove(each)
        self._done += mine
        for tensor in autograd_graph.tensors_in(tensors):
            self._note(tensor, -1, self._done)

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        if self._followed is not None:
            self._follow(self._followed, event)
        if not self._done or self._reported:
            return
        self._number += 1
        for _, reference in self._done:
            sentinel = reference()
            if sentinel is not None:
                sentinel.number = self._number
        self._updates.append(self._done)
        self._done = []
        row = list(self._updates)[-_ROW - 1 : -1]
        if len(row) == _ROW and all(map(_lives, row)):
            self._search(frame, event, row[0])
        else:
            self._suspects.clear()

    def unwatched(self) -> None:
        self._pending.clear()
        self._done = []
        self._updates.clear()
        self._suspects.clear()

    def _search(self, frame: FrameType, event: Event, first: list[tuple[int, Any]]) -> None:
        found: dict[str, GraphOwner] = {}
        for each in _Search(frame).holders():
            found.setdefault(each.spelled, each)
        for spelled, holder in found.items():
            before = self._suspects.get(spelled)
            if before is None or holder.size <= before:
                continue
            place = append_sites.place(holder)
            if place is not None:
                self._report(holder, place, event, [reference for _, reference in first])
                return
        self._suspects = {spelled: each.size for spelled, each in found.items()}

    def _report(
        self, holder: GraphOwner, place: Location, event: Event, sentinels: list[Any]
    ) -> None:
        self._reported = True
        found = GraphsRetained(place=place, holder=holder.spelled, how=holder.how)
        self.watcher.measure(found)
        updates = self.watcher.updates - _ROW
        self._followed = FollowedGraph(found, sentinels, updates, _epoch(event))

    def _follow(self, graph: FollowedGraph, event: Event) -> None:
        if not graph.lives():
            self._followed = None
        elif graph.stays(self.watcher.updates, _epoch(event)):
            self._followed = None
            self.watcher.measure(replace(graph.found, stays=True))


def _epoch(event: Event) -> Turn | None:
    """Of the outermost loop of the program: one over parts of an epoch is within it."""
    for turn in event.turns[:-1]:
        if user_frames.kind_of(turn.loop.place.path) == "user":
            return turn
    return None


def _lives(update: list[tuple[int, Any]]) -> bool:
    return any(reference() is not None for _, reference in update)


Entries = list[Any] | tuple[Any, ...] | deque[Any] | dict[Any, Any]


class _Search:
    """Through the variables of the frames on the stack, as far as is reasonable."""

    def __init__(self, frame: FrameType) -> None:
        self._frame = frame
        self._seen: set[int] = set()
        self._numbers: dict[int, set[int]] = {}
        self._left = _VISITS
        self._functions: list[tuple[FrameType, FunctionType, str]] = []
        """Looked at after all variables: a function may remember one of them."""

    def holders(self) -> Iterator[GraphOwner]:
        for frame in user_frames.frames_of_user(self._frame):
            variables = frame.f_locals
            for name, value in list(variables.items()):
                if not name.startswith("__"):
                    yield from self._visit(frame, value, name, "", None, "", 4)
            if frame.f_globals is not variables:
                for name, value in list(frame.f_globals.items()):
                    if not name.startswith("__"):
                        yield from self._visit(frame, value, name, "", None, "", 3)
            let_go(frame, variables)
        while self._functions:
            yield from self._closure(*self._functions.pop(0))

    def _visit(
        self, frame: FrameType, value: object, spelled: str, owner: str, kind: type | None,
        attribute: str, depth: int,
    ) -> Iterator[GraphOwner]:  # fmt: skip
        self._left -= 1
        if self._left < 0:
            return
        if isinstance(value, torch.Tensor):
            numbers = self._of(value)
            if len(numbers) > _ROW:
                yield GraphOwner(frame, spelled, owner, kind, attribute, "sum", len(numbers))
            return
        plain = isinstance(value, (str, bytes, int, float, type))
        if depth == 0 or plain or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, (list, tuple, deque, dict)):
            yield from self._container(frame, value, spelled, owner, kind, attribute, depth)
        elif isinstance(value, FunctionType):
            self._functions.append((frame, value, spelled))
        elif hasattr(value, "__dict__") and _is_open(value):
            parts = dict(vars(value))
            if isinstance(value, torch.nn.Module):
                parts = {k: v for k, v in parts.items() if k not in _SKIPPED} | value._modules
            for name, each in parts.items():
                below = f"{spelled}.{name}"
                yield from self._visit(frame, each, below, spelled, type(value), name, depth - 1)

    def _closure(
        self, frame: FrameType, function: FunctionType, spelled: str
    ) -> Iterator[GraphOwner]:
        """The tensors that a function of the program remembers from call to call."""
        for name, held in inspection.closed_over(function):
            for each in self._visit(frame, held, name, "", None, "", 2):
                yield each._replace(owner=spelled, code=function.__code__)

    def _container(
        self, frame: FrameType, value: Entries, spelled: str, owner: str, kind: type | None,
        attribute: str, depth: int,
    ) -> Iterator[GraphOwner]:  # fmt: skip
        pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
        pairs = pairs[-64:]
        if _is_open(value) and not type(value).__module__.startswith("collections"):
            owner, kind = spelled, type(value)  # a class of the program's that extends a container
        sums = False
        for key, each in pairs:
            if isinstance(each, torch.Tensor) and len(self._of(each)) > _ROW:
                sums = True
                below = f"{spelled}[{key!r}]"
                numbers = self._of(each)
                yield GraphOwner(frame, below, owner, kind, attribute, "sum", len(numbers))
        if sums or getattr(value, "maxlen", None) is not None:
            return
        numbers = {
            number
            for _, each in pairs
            if not isinstance(each, (list, dict, deque)) or isinstance(value, list)
            for tensor in autograd_graph.tensors_in(each, 2)
            for number in self._of(tensor)
        }
        if len(numbers) >= _ROW and not isinstance(value, tuple):
            how = "store" if isinstance(value, dict) else "append"
            yield GraphOwner(frame, spelled, owner, kind, attribute, how, len(value))
            return
        for key, each in pairs:
            if isinstance(each, (list, tuple, deque, dict)) or hasattr(each, "__dict__"):
                below = f"{spelled}[{key!r}]"
                yield from self._visit(frame, each, below, owner, kind, attribute, depth - 1)

    def _of(self, tensor: torch.Tensor) -> set[int]:
        """The updates whose graphs a tensor keeps."""
        if tensor.grad_fn is None:
            return set()
        known = self._numbers.get(id(tensor))
        if known is not None:
            return known
        found: set[int] = set()
        seen: dict[int, Any] = {}
        waiting: list[Any] = [tensor.grad_fn]
        while waiting and len(seen) < _NODES:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen[id(node)] = node
            noted = node.metadata.get(_NOTE)
            if noted is not None and noted.number is not None:
                found.add(noted.number)
                continue
            waiting += [each for each, _ in node.next_functions if each is not None]
        self._numbers[id(tensor)] = found
        return found


def _is_open(value: object) -> bool:
    """An object whose attributes may keep the values that a loop collects."""
    module = type(value).__module__
    if isinstance(value, torch.nn.Module):
        return True
    return not module.startswith(("torch", "numpy", "builtins")) and not isinstance(
        value, type(sys)
    )


def let_go(frame: FrameType, variables: Any) -> None:
    """Before Python 3.13, reading a function's variables leaves a copy in the frame, which would
    keep them alive; unless the program itself has asked for it."""
    fast = frame.f_code.co_flags & _OPTIMIZED
    if fast and isinstance(variables, dict) and sys.getrefcount(variables) <= 5:
        variables.clear()
