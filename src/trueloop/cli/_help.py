"""`--help` and `--help-all`: how an option, its values, its unit and its default are shown."""

from __future__ import annotations

import dataclasses
import re
import shutil
import textwrap
from argparse import SUPPRESS, Action, HelpFormatter
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import jsonargparse

from trueloop.option import OptionFacts

_COLUMN = 22
"""Where the texts begin."""
EVERYTHING = "--help-all"
LIST = "A,B"
"""The placeholder of an option that takes several values."""
PARSERS: ContextVar[list[Any] | None] = ContextVar("PARSERS", default=None)
"""Takes the parser of a --help, whose page is then not printed."""
_FACTS = frozenset(field.name for field in dataclasses.fields(OptionFacts))


class HelpfulParser(jsonargparse.ArgumentParser):
    """A parser that has its help pages from what was declared of its options."""

    def __init__(self, prog: str, **kwargs: Any) -> None:
        super().__init__(prog=prog, formatter_class=OptionFormatter, add_help=False, **kwargs)
        self.facts: dict[str, OptionFacts] = {}
        """Of each option, by the name of its value."""
        self.fine: dict[str, str] = {}
        """The heading of each option in --help-all, where that is not its group's."""
        self.add_argument(
            "-h", "--help", EVERYTHING, action=HelpAction,
            help="this page, or one with every option and all details",
        )  # fmt: skip

    def add_option(self, *names: str, **kwargs: Any) -> None:
        """`add_argument`, with what the help says of it: the fields of `OptionFacts`.

        The verb itself refuses other values than `choices`, in a message with a remedy.
        """
        facts = {key: kwargs.pop(key) for key in _FACTS & kwargs.keys()}
        action = self.add_argument(*names, **kwargs)
        self.facts[action.dest] = OptionFacts(**{"usual": True, **facts})

    def format_help(self, formatter: Any = None) -> str:
        return format_help(self, everything=False)


class OptionFormatter(HelpFormatter):
    """Keeps the lines of examples; shows a switch in one word."""

    def __init__(self, prog: str, **kwargs: Any) -> None:
        width = shutil.get_terminal_size().columns - 1
        super().__init__(prog, max_help_position=_COLUMN, width=width, **kwargs)

    def _format_action_invocation(self, action: Any) -> str:
        if action.nargs == "?" and len(action.option_strings) == 2:  # --quiet, --no-quiet
            is_switch = isinstance(action, jsonargparse.ActionYesNo)
            value = "" if is_switch or not action.metavar else f" [{action.metavar}]"
            return f"--[no-]{action.option_strings[0].removeprefix('--')}{value}"
        if action.dest == "help":
            return "-h, --help[-all]"
        return super()._format_action_invocation(action)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Fill the paragraphs, but for those with indented lines: examples."""
        filled = []
        for part in text.split("\n\n"):
            if not re.search(r"^ ", part, re.MULTILINE):
                part = super()._fill_text(part, width, indent)
            filled.append(part)
        return "\n\n".join(filled)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _get_help_string(self, action: Any) -> str:
        return str(action.help or "")  # `help_of` has put the default in


def help_of(action: Action, facts: OptionFacts, *, short: bool) -> str:
    """The help of one option; `short`: only its first sentence."""
    whole = action.help or ""
    text = first_sentence(whole) if short else whole
    text = text[:1].upper() + text[1:]
    if first_sentence(whole) == whole:
        text = text.removesuffix(".")
    values = values_of(facts, several=action.metavar == LIST)
    said = "; ".join(part for part in (values, _default(action, facts)) if part)
    return f"{text} ({said})".replace("%", "%%") if said else text.replace("%", "%%")


def values_of(facts: OptionFacts, *, several: bool = False) -> str:
    """The values that an option takes; empty if any value will do."""
    before = "any of " if several else ""
    return before + ", ".join(facts.choices) if facts.choices else ""


def first_sentence(text: str) -> str:
    """The text up to the first full stop, colon or semicolon that ends a part of it."""
    match = re.search(r"(?<!e\.g)(?<!i\.e)[.;](?=\s)", text)
    return text if match is None else text[: match.start()]


def _default(action: Action, facts: OptionFacts) -> str:
    """ "default: 64 samples", "default: no limit", "in minutes", "required"."""
    if facts.required:
        return "required"
    default = action.default
    if default in (None, SUPPRESS, "", [], ()) or action.nargs == 0:
        said = [f"in {facts.unit}"] if facts.unit else []
        return "; ".join(said + ([f"default: {facts.unset}"] if facts.unset else []))
    if isinstance(default, bool):
        default = "yes" if default else "no"
    elif isinstance(default, (list, tuple)):
        default = ",".join(default)
    return f"default: {default} {facts.unit}".rstrip()


def format_help(parser: HelpfulParser, *, everything: bool) -> str:
    """The page of a verb's options: the usual ones under the headings of what they belong to, or
    all of them under finer ones."""
    formatter = parser._get_formatter()
    formatter.add_usage(parser.usage, parser._actions, [])
    formatter.add_text(parser.description)
    for title, actions in sections(parser, everything=everything):
        formatter.start_section(title)
        for action in actions:
            facts = parser.facts.get(action.dest, OptionFacts(usual=True))
            shown = _copy(action, help_of(action, facts, short=not everything))
            formatter.add_argument(shown)
        formatter.end_section()
    formatter.add_text(parser.epilog)
    return formatter.format_help()


def sections(parser: HelpfulParser, *, everything: bool) -> list[tuple[str, list[Action]]]:
    """The headings, each with its options, in the order of the page."""
    found: dict[str, list[Action]] = {}
    for group in parser._action_groups:
        coarse = {"positional arguments": "arguments"}.get(str(group.title), str(group.title))
        for action in group._group_actions:
            facts = parser.facts.get(action.dest, OptionFacts(usual=True))
            hidden = action.help == SUPPRESS or not (everything or facts.usual)
            if not hidden:
                title = (everything and parser.fine.get(action.dest)) or coarse
                found.setdefault(title, []).append(action)
    return list(found.items())


def _copy(action: Action, text: str) -> Action:
    import copy

    shown = copy.copy(action)
    shown.help = text
    return shown


class HelpAction(Action):
    """Prints the page and ends the command."""

    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=SUPPRESS, **kwargs)

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        if (parsers := PARSERS.get()) is not None:
            parsers.append(parser)
            parser.exit()
        print(format_help(parser, everything=option == EVERYTHING), end="")
        parser.exit()
