"""The loops that a framework runs around functions of the user's: what all frameworks share.

Lightning, Ignite and transformers' Trainer call the user's functions in a loop that is not there to
be read. Their files make the same calls in the same order, so that rules see the training that the
functions are parts of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueloop.doctor.model.events import LoopEntered, LoopLeft
from trueloop.doctor.model.things import Loop
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, find_method
from trueloop.doctor.static.interpreter.values import NONE, Function, Value

TURNS = 3
"""Turns that are gone through of a loop whose length is not known."""


class Looping:
    """The events around a loop."""

    def __init__(self, m: Interpreter, loop: Loop, node: ast.AST) -> None:
        self.m, self.loop, self.node = m, loop, node

    def __enter__(self) -> None:
        self.m.emit(LoopEntered, self.node, loop=self.loop)

    def __exit__(self, *failure: object) -> None:
        if failure[0] is None:
            self.m.emit(LoopLeft, self.node, loop=self.loop)


def turns(m: Interpreter, loop: Loop) -> Iterator[int]:
    """The turns of a loop that are gone through."""
    for index in range(loop.simulated):
        with m.turn(loop, index):
            yield index


def method(m: Interpreter, receiver: Value, name: str, node: ast.AST, *args: Value) -> Value:
    """A call of a library's method that the framework makes: `optimizer.step()`. Nothing happens
    where it is not known what the receiver is."""
    known = find_method(receiver, name)
    return NONE if known is None else known(LibraryCall(m, node, name, [*args], {}, receiver))


def most_arguments(function: Function, bound: bool) -> int | None:
    """The positional arguments that a function takes, without the object that it is a method of;
    None for any number."""
    spec = function.node.args
    if spec.vararg is not None:
        return None
    return len(spec.posonlyargs) + len(spec.args) - bound
