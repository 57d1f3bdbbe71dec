"""Fields of dataclasses that are options of the command line, and what `--help` says of them beside
the docstring below the field."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")
_KEY = "option"


@dataclass(frozen=True, kw_only=True)
class OptionFacts:
    """The part of an option's help that is neither its text nor its default."""

    usual: bool = False
    """Whether `--help` lists it; `--help-all` lists every option."""
    group: str = ""
    """The heading in `--help-all` of this option and of the fields that follow it."""
    choices: tuple[str, ...] = ()
    """The values that it takes; capitals (`cuda:N`) are to be replaced."""
    unit: str = ""
    """The unit of a number: "updates"."""
    unset: str = ""
    """The effect of None, where that is the default: "no limit"."""
    required: bool = False
    """Whether the command cannot do without it."""


def option(
    default: T,
    *,
    usual: bool = False,
    group: str = "",
    choices: tuple[str, ...] = (),
    unit: str = "",
    unset: str = "",
    required: bool = False,
) -> T:
    """A field of a dataclass with its default and `OptionFacts`; its help is the docstring below.

    Of a dataclass without any such field, `--help` lists every option.
    """
    facts = OptionFacts(
        usual=usual, group=group, choices=choices, unit=unit, unset=unset, required=required
    )
    metadata = {_KEY: facts}
    if isinstance(default, list):
        return cast(T, dataclasses.field(default_factory=lambda: [*default], metadata=metadata))
    return dataclasses.field(default=default, metadata=metadata)


def facts_of(field: dataclasses.Field[Any]) -> OptionFacts | None:
    """The facts that a field was declared with; None for a field without."""
    facts: OptionFacts | None = field.metadata.get(_KEY)
    return facts
