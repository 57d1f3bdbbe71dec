"""Settings written as a configuration file."""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path
from typing import Any

from trueloop.cli.options import Settings
from trueloop.cli.parser import field_docs
from trueloop.option import OptionFacts, facts_of

_WIDTH = 96


def as_yaml(settings: Settings) -> str:
    """The settings as a file that `--config` reads back as the same settings.

    What the user has not stated of the recipe is left to the task, which may choose by the data,
    and is written as a comment.
    """
    lines = [
        "# trueloop train --config FILE",
        "# What is commented out is the task's default, which may go by the data: remove the # in",
        "# front of an option to decide it here.",
        "",
        _line("task", settings.task),
    ]
    plain = settings.config()
    for title, part in (
        ("options of the task", settings.options),
        ("how it trains", settings.recipe),
        ("the run", settings.run),
    ):
        cls: type = type(part)
        docs = field_docs(cls)
        facts = {field.name: facts_of(field) for field in dataclasses.fields(part)}
        named = list(facts)
        shown = [name for name in named if name in plain]
        # Where the run goes is its own, and is printed only if it was given.
        own = {name: getattr(part, name) for name in named if name in settings.stated - set(shown)}
        if shown:
            lines += ["", f"# ---- {title}"]
        for name in [*shown, *own]:
            value = plain[name] if name in plain else own[name]
            left = part is settings.recipe and name not in settings.stated
            lines += [
                "",
                *_comment(described(docs.get(name, ""), facts[name])),
                ("# " if left else "") + _line(name, value),
            ]
    return "\n".join(lines) + "\n"


def described(text: str, facts: OptionFacts | None) -> str:
    """The text of an option with its values, its unit and what null means."""
    if facts is None:
        return text
    unit, null = facts.unit and f"in {facts.unit}", facts.unset and f"null: {facts.unset}"
    said = "; ".join(part for part in (", ".join(facts.choices), unit, null) if part)
    return f"{text} ({said})" if said else text


def _line(name: str, value: Any) -> str:
    import yaml

    given = str(value) if isinstance(value, Path) else value
    text = yaml.safe_dump(given, default_flow_style=True, allow_unicode=True, width=10**9)
    return f"{name}: {text.removesuffix(chr(10)).removesuffix(chr(10) + '...')}"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH)]
