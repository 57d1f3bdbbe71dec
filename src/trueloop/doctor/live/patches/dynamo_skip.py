"""The compiler must not compile the watcher.

`torch.compile` compiles whatever frames run below what it was given, and leaves some of them to
Python: those of torch's own layers and optimizers, and whatever it breaks off at. What is put
around these, and what that calls in turn, would be compiled as code of the program: graphs, graph
breaks and recompilations that there would not be without us.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from itertools import takewhile
from types import CodeType, FunctionType, ModuleType

from trueloop.doctor.live.frames import user_frames
from trueloop.uncompiled import skipped_by_compiler

_PACKAGE = "trueloop.doctor.live"
_INSIDE = f"{_PACKAGE}."
_left: set[str] = set()
"""The modules that have been left to Python: once is enough in a process."""
_newest = [""]
"""The module that had been imported last by then."""


def leave_to_python() -> None:
    """Tell the compiler to begin with no function of ours, nor with what it calls, except where
    that is what the program itself has called. What it compiles as a part of something larger
    still goes through the functions that were put into torch."""
    # Only those that have been imported since: to look at the name of each is to copy its page of
    # memory where many processes are forked from one that has imported all.
    for name in _imported_since(_newest[-1]):
        if name not in _left and (name == _PACKAGE or name.startswith(_INSIDE)):
            _left.add(name)
            for code in _codes(sys.modules[name]):
                leave(code)
    _newest[-1] = next(reversed(sys.modules))


def _imported_since(newest: str) -> list[str]:
    """The modules that were imported after this one; all if it is there no more."""
    return list(takewhile(lambda name: name != newest, reversed(sys.modules)))


def leave(code: CodeType) -> None:
    """Do the same for one function of ours; only for its own frame where `passed_over` marks it as
    a function that calls the program."""
    alone, all_below = skipped_by_compiler()
    (alone if user_frames.is_passed_over(code) else all_below)(code)


def _codes(module: ModuleType) -> Iterator[CodeType]:
    """Of the functions that are written in a module, and of those inside of them."""
    for value in vars(module).values():
        for function in vars(value).values() if inspect.isclass(value) else (value,):
            plain = inspect.unwrap(function) if callable(function) else function
            plain = plain.fget if isinstance(plain, property) else plain
            plain = plain.__func__ if isinstance(plain, (staticmethod, classmethod)) else plain
            if isinstance(plain, FunctionType) and plain.__module__ == module.__name__:
                yield from _and_inner(plain.__code__)


def _and_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _and_inner(each)
