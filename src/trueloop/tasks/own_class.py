"""The missing parts of a task class of the user's own, before anything is read or built."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from types import FunctionType
from typing import Any

from trueloop.errors import ConfigError
from trueloop.tasks.base import Task
from trueloop.tasks.recipe import Recipe

_EXAMPLES = {
    "splits": "def splits(self): return Splits(train=…, val=…)",
    "model": "def model(self): return nn.Linear(8, 1)",
}


def check_class(cls: type[Task]) -> None:
    """Raise `ConfigError` naming the first thing that a task class lacks, and what to write."""
    name = cls.__name__
    for method, example in _EXAMPLES.items():
        found = inspect.getattr_static(cls, method)
        if found is inspect.getattr_static(Task, method):
            raise ConfigError(f"{name} has no method {method}: write `{example}`")
        if not isinstance(found, (FunctionType, staticmethod, classmethod)):
            raise ConfigError(
                f"{name}.{method} is a {type(found).__name__}, not a method: write `{example}`"
            )
    _check_attributes(cls)
    try:
        inspect.signature(cls).bind(None, data=None, seed=0)
    except TypeError:
        raise ConfigError(
            f"{name}.__init__ does not accept the arguments of a task: write "
            "`def __init__(self, options=None, *, data=None, seed=0)` and call super().__init__ "
            "with them, or leave __init__ out"
        ) from None


def _check_attributes(cls: type[Task]) -> None:
    name, classes, threads = cls.__name__, cls.classes, cls.threads
    if not isinstance(classes, (list, tuple, property)) and classes is not None:
        raise ConfigError(
            f"{name}.classes = {classes!r} are not names: write classes = ['cat', 'dog']"
        )
    if not isinstance(cls.recipe, Recipe):
        raise ConfigError(
            f"{name}.recipe is a {type(cls.recipe).__name__}: write recipe = Recipe(epochs=10)"
        )
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ConfigError(f"{name}.threads = {threads!r} is not a number: write threads = 1")


def check_options(cls: type[Task]) -> None:
    """Raise `ConfigError` for an option of a task class without a type or a default."""
    options, where = cls.Options, f"{cls.__name__}.Options"
    if not dataclasses.is_dataclass(options):
        raise ConfigError(f"{where} is not a dataclass: write @dataclass(kw_only=True) above it")
    fields = {field.name: field for field in dataclasses.fields(options)}
    for base in reversed(options.__mro__[:-1]):
        if "__dataclass_fields__" not in vars(base):
            raise ConfigError(
                f"{where} is not a dataclass itself: write @dataclass(kw_only=True) above it"
            )
        for option, value in vars(base).items():
            if option.startswith("_") or option in fields or _is_code(value):
                continue
            kind = type(value).__name__ if value is not None else "int | None"
            raise ConfigError(
                f"the option {option} of {where} has no type: write "
                f"`{option}: {kind} = {value!r:.40}`"
            )
    for option, field in fields.items():
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            kind = (
                field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "")
            )
            raise ConfigError(
                f"the option {option} of {where} has no default: write `{option}: {kind} = …`"
            )
    try:
        typing.get_type_hints(options)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise ConfigError(
            f"a type in {where} cannot be resolved ({error}): import it at the top of the file"
        ) from None


def _is_code(value: Any) -> bool:
    return isinstance(value, (FunctionType, property, staticmethod, classmethod, type))
