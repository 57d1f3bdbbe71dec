"""Where names live: modules of the user's, and the scopes of their functions."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueloop.doctor.source.survey import Survey
    from trueloop.doctor.source.values import Class, Function


@dataclass(eq=False, slots=True)
class Module:
    """A file of the user's, parsed."""

    path: str
    """As findings show it."""
    name: str
    """Dotted name by which other files of the project import it; may be empty."""
    tree: ast.Module
    survey: Survey
    package: str = ""
    """Dotted name of the package it lies in, for relative imports."""


@dataclass(eq=False, slots=True)
class Scope:
    """Variables of a function's call, of a class body or of a module."""

    module: Module
    parent: Scope | None = None
    """The scope around the definition; None for a module's own."""
    function: Function | None = None
    owner: Class | None = None
    """The class whose method this is, for `super()`."""
    receiver: Any = None
    variables: dict[str, Any] = field(default_factory=dict)
    born: dict[str, int] = field(default_factory=dict)
    """Name -> how many turns of loops had begun when it was last assigned afresh."""
    outer: dict[str, Scope] = field(default_factory=dict)
    """Names declared `global` or `nonlocal` -> the scope that they belong to."""
    stars: list[str] = field(default_factory=list)
    """Libraries imported with `*`."""
    is_class: bool = False
    returned: list[Any] = field(default_factory=list)
    on_yield: Any = None
    """What happens with a value that is yielded: a callable that returns the value sent back."""

    def find(self, name: str) -> Scope | None:
        """The scope that holds a name; class bodies are seen only from themselves."""
        scope: Scope | None = self.outer.get(name, self)
        first = True
        while scope is not None:
            if name in scope.variables and (first or not scope.is_class):
                return scope
            scope, first = scope.parent, False
        return None

    def top(self) -> Scope:
        """The module's own scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope
