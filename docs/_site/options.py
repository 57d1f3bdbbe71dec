"""Every option of every verb, as the parsers of the command line have them."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

from trueloop.cli import VERBS, main
from trueloop.option import OptionFacts

TASKS = ("spiral", "digits", "table", "images", "text")
OF_A_TASK = ("train", "tune", "verify-resume")
"""Verbs whose options depend on the task."""


class Option(NamedTuple):
    """An option as a parser has it."""

    names: tuple[str, ...]
    """All spellings with two dashes: --quiet, --no-quiet."""
    value: str
    """The placeholder of its value in the help; empty for a switch."""
    default: str
    text: str
    group: str


def options_of(verb: str, task: str = "") -> tuple[str, list[Option]]:
    """What a verb does, and its options, in the order of its help."""
    parsers: list[argparse.ArgumentParser] = []
    make = argparse.ArgumentParser.__init__

    def noted(self: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        parsers.append(self)

    words = [verb, *([task] if task else []), "--help"]
    with (
        mock.patch.object(argparse.ArgumentParser, "__init__", noted),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        assert main(words) == 0
    parser = next(each for each in parsers if (each.prog or "").startswith(f"trueloop {verb}"))
    return str(parser.description or ""), list(_options(parser))


def _options(parser: argparse.ArgumentParser) -> Iterator[Option]:
    for group in parser._action_groups:
        for action in group._group_actions:
            names = tuple(name for name in action.option_strings if name.startswith("--"))
            hidden = action.help == argparse.SUPPRESS
            if (
                names
                and not hidden
                and not isinstance(action, argparse._HelpAction)
                and "--help" not in names
            ):
                facts = getattr(parser, "facts", {}).get(action.dest, OptionFacts())
                default = _default(action, facts)
                text = _text(action, facts)
                yield Option(names, _value(action), default, text, group.title or "")


def _value(action: argparse.Action) -> str:
    if action.nargs in (0, "?"):
        return ""
    shown = action.metavar or (" | ".join(map(str, action.choices)) if action.choices else "")
    shown = shown if isinstance(shown, str) else " ".join(shown)
    return f"{shown or 'VALUE'} …" if action.nargs in ("+", "*") else shown or "VALUE"


def _default(action: argparse.Action, facts: OptionFacts) -> str:
    if facts.required:
        return "required"
    if action.default is None and facts.unset:
        return facts.unset
    if action.default in (None, argparse.SUPPRESS, "", [], (), False) or action.nargs == 0:
        return ""
    if action.default is True:
        return "yes"
    if isinstance(action.default, (list, tuple)):
        return ",".join(map(str, action.default))
    return str(action.default)


def _text(action: argparse.Action, facts: OptionFacts) -> str:
    text = " ".join((action.help or "").replace("%%", "%").split())
    values = ", ".join(facts.choices) or (f"in {facts.unit}" if facts.unit else "")
    return f"{text} ({values})" if values else text


def all_options() -> dict[str, set[str]]:
    """The spellings of all options by verb; of a task's verb, those of every ready-made task."""
    found: dict[str, set[str]] = {}
    for verb in VERBS:
        for task in TASKS if verb in OF_A_TASK else ("",):
            _, options = options_of(verb, task)
            found.setdefault(verb, set()).update(name for each in options for name in each.names)
    return found


def page() -> str:
    """The page of all options, in Markdown."""
    parts = [
        "# Options\n\nEvery option of every verb, as `--help` knows them. `trueloop train TASK "
        "--help` prints those of a task with its own defaults; where the tasks differ, the table "
        "shows no default.\n"
    ]
    by_task = {task: options_of("train", task)[1] for task in TASKS}
    names = [{each.names[0] for each in options} for options in by_task.values()]
    common = set.intersection(*names)
    for verb, what in VERBS.items():
        parts.append(f"\n## {verb}\n\n`trueloop {verb}`: {what}.\n")
        if verb == "train":
            parts.append(_table(_agreed(common, by_task)))
            for task, options in by_task.items():
                own = [each for each in options if each.names[0] not in common]
                if own:
                    parts.append(f"\n### train {task}\n{_table(own)}")
        elif verb in OF_A_TASK:
            own = [each for each in options_of(verb, "spiral")[1] if each.names[0] not in common]
            parts.append("\nThe options of `train`, and\n")
            parts.append(_table(own))
        else:
            parts.append(_table(options_of(verb)[1]))
    return "".join(parts)


def _agreed(common: set[str], by_task: dict[str, list[Option]]) -> list[Option]:
    """The options that all tasks share, with the default that they agree on."""
    defaults: dict[str, set[str]] = {}
    for options in by_task.values():
        for each in options:
            defaults.setdefault(each.names[0], set()).add(each.default)
    return [
        each if len(defaults[each.names[0]]) == 1 else each._replace(default="by task")
        for each in by_task["spiral"]
        if each.names[0] in common
    ]


def _table(options: list[Option]) -> str:
    if not options:
        return "\nNo options.\n"
    rows = []
    for each in options:
        shown = ", ".join(f"`{name}`" for name in each.names)
        value = f" {_cell(each.value)}" if each.value else ""
        default = (
            f"`{each.default}`" if each.default and each.default != "by task" else each.default
        )
        rows.append(f"| {shown}{value} | {default} | {_cell(each.text)} |\n")
    return "\n| option | default | |\n| --- | --- | --- |\n" + "".join(rows)


def _cell(text: str) -> str:
    for sign in "\\|<>*_[]`":
        text = text.replace(sign, f"\\{sign}")
    return text
