"""The code that runs at a `yield`: the body of the loop or of the `with` around the generator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trueloop.doctor.static.interpreter.interpreter import Interpreter

Depth = tuple[int, int, int, int]
"""How many calls a run is inside, and how much it remembers of each."""


def depth_of(m: Interpreter) -> Depth:
    """Where a run is before it enters a generator."""
    return len(m.calls), len(m.modules), len(m.functions), len(m.receivers)


@contextmanager
def at_caller(m: Interpreter, depth: Depth) -> Iterator[None]:
    """The body is written where the generator is called, and is not called by it."""
    calls, modules = m.calls[depth[0] :], m.modules[depth[1] :]
    functions, receivers = m.functions[depth[2] :], m.receivers[depth[3] :]
    del m.calls[depth[0] :], m.modules[depth[1] :]
    del m.functions[depth[2] :], m.receivers[depth[3] :]
    try:
        yield
    finally:
        m.calls += calls
        m.modules += modules
        m.functions += functions
        m.receivers += receivers
