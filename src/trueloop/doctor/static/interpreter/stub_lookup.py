"""How the library's knowledge is looked up: by the dotted name of what is called, or by the kind of
thing and the name of the method.

A file of `library` registers what it knows with the decorators here; the machine asks `find_call`
and `find_method`. What nobody registered is foreign code: the machine takes the result as unknown
and notes that the arguments were handed over.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, TypeVar, overload

from trueloop.doctor.model.events import Event
from trueloop.doctor.model.findings import Location
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.values import KEY, Unknown, Value, constant

MISSING: Any = object()


@dataclass(slots=True)
class LibraryCall:
    """One call of something that the library knows."""

    machine: Interpreter
    node: ast.AST
    """The call expression (or whatever else in the source makes the call)."""
    name: str
    """Canonical dotted name of what is called; for a method, its bare name."""
    args: list[Value]
    kwargs: dict[str, Value] = field(default_factory=dict)
    receiver: Any = None
    """The receiver of a method call."""
    open: bool = False
    """There are more arguments that are not known (`*args`, `**kwargs`)."""
    spread: Sequence[Value] = ()
    """The containers that these are in."""

    @overload
    def arg(self, position: int, name: str = "") -> Value | None: ...
    @overload
    def arg(self, position: int, name: str, default: Value) -> Value: ...
    def arg(self, position: int, name: str = "", default: Value | None = None) -> Value | None:
        """The value of an argument; `default` if it was not given."""
        if name and name in self.kwargs:
            return self.kwargs[name]
        if 0 <= position < len(self.args):
            return self.args[position]
        return default

    def given(self, position: int, name: str = "") -> bool | None:
        """Whether an argument was given; None where that is not known."""
        if self.arg(position, name, MISSING) is not MISSING:
            return True
        return None if self.open else False

    def const(
        self, position: int, name: str = "", default: object = None, unknown: object = None
    ) -> Any:
        """The constant given for an argument: `default` if it was not given (and certainly not),
        `unknown` if it was given and is not a constant."""
        value = self.arg(position, name, MISSING)
        if value is MISSING:
            return unknown if self.open else default
        return constant(value, unknown)

    @property
    def place(self) -> Location:
        return self.machine.place(self.node)

    @property
    def result_used(self) -> bool:
        """The call is part of a larger expression or is assigned; not a statement on its own."""
        return self.machine.result_used(self.node)

    def emit(self, kind: type[Event], **fields: Any) -> None:
        """Tell the rules what happens here."""
        self.machine.emit(kind, self.node, **fields)

    def unknown(self, *of: Any) -> Unknown:
        """An unknown result, computed from `of`."""
        return self.machine.unknown(self.node, of)

    def expose(self, *values: Any) -> None:
        """Note that code which cannot be read gets the things in `values`."""
        self.machine.expose(values, self.name, self.node)


Model_ = Callable[[LibraryCall], Value]
F = TypeVar("F", bound=Model_)
_CALLS: dict[str, Model_] = {}
_PREFIXES: dict[str, Model_] = {}
_METHODS: dict[tuple[type, str], Model_] = {}


def calls(*names: str) -> Callable[[F], F]:
    """Register the effect of calling one of these dotted names; a name that ends in `.*` matches
    all that begin so (the longest such name wins, exact names before them)."""

    def register(function: F) -> F:
        for name in names:
            table, key = (_PREFIXES, name[:-1]) if name.endswith(".*") else (_CALLS, name)
            assert key not in table, f"{name} is registered twice"
            table[key] = function
        _call_with_prefix.cache_clear()
        _heads.cache_clear()
        return function

    return register


def methods(kind: type, *names: str) -> Callable[[F], F]:
    """Register what a method of a kind of value does (`events.Optimizer`, `values.Items`, ...)."""

    def register(function: F) -> F:
        for name in names:
            assert (kind, name) not in _METHODS, f"{kind.__name__}.{name} is registered twice"
            _METHODS[kind, name] = function
        _method_of.cache_clear()
        return function

    return register


def find_call(name: str) -> Model_ | None:
    found = _CALLS.get(name)
    return found if found is not None or len(name) > KEY else _call_with_prefix(name)


def find_star_call(packages: Sequence[str], name: str) -> str | None:
    """The dotted name of what is called by `name` after `from package import *`, if only one of the
    `packages` can have it, for all that is known."""
    exact = (f"{each}.{name}" for each in packages if f"{each}.{name}" in _CALLS)
    if (found := next(exact, None)) is not None:
        return found
    if not _heads().issuperset(each.partition(".")[0] for each in packages):
        return None  # a package that is not known may have any name
    matching = (f"{each}.{name}" for each in packages if find_call(f"{each}.{name}") is not None)
    return next(matching, None)


@cache
def _heads() -> frozenset[str]:
    """The packages of which something is known."""
    known = (each.partition(".")[0] for each in (*_CALLS, *_PREFIXES))
    return frozenset(known) | sys.stdlib_module_names


@lru_cache(maxsize=8192)
def _call_with_prefix(head: str) -> Model_ | None:
    while head:
        head = head.rpartition(".")[0]
        found = _PREFIXES.get(f"{head}.")
        if found is not None:
            return found
    return None


def find_method(receiver: object, name: str) -> Model_ | None:
    return _method_of(type(receiver), name) if len(name) <= KEY else None  # type: ignore[arg-type]


@lru_cache(maxsize=8192)
def _method_of(kind: type, name: str) -> Model_ | None:
    found = (_METHODS.get((base, name)) for base in kind.__mro__)
    return next((each for each in found if each is not None), None)
