"""`trueloop explain [CODE]`: a rule's page, or all rules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trueloop.cli import OK
from trueloop.errors import ConfigError

if TYPE_CHECKING:
    from trueloop.doctor.rules.catalogue import Entry


def main(argv: Sequence[str]) -> int:
    """Print it; the exit status."""
    from trueloop.cli.parser import Parser

    parser = Parser(
        "trueloop explain",
        usage="trueloop explain [CODE]",
        description="Print the page of a rule: what it finds, why that breaks training, and the "
        "correct code.\nWithout CODE, list all rules.",
        epilog="example:\n  trueloop explain TL101",
    )
    parser.add_option(
        "code", nargs="?", metavar="CODE", unset="list all rules", help="code or name of a rule"
    )
    given = parser.parse(argv)
    if given.code is None:
        print(_list())
    else:
        _print_page(entry_of(given.code))
    return OK


def entry_of(word: str) -> Entry:
    """The rule with this code or name. Raises `ConfigError` with the nearest one."""
    from trueloop.doctor.rules.catalogue import BY_CODE, ENTRIES
    from trueloop.doctor.rules.selection import unknown_rule

    for entry in ENTRIES:
        if word.strip().lower() in (entry.code.lower(), entry.name):
            return entry
    assert word not in BY_CODE
    raise ConfigError(unknown_rule(word))


def _list() -> str:
    from trueloop.doctor.rules.catalogue import ENTRIES
    from trueloop.doctor.rules.pages import GROUPS

    width = max(len(entry.name) for entry in ENTRIES)
    parts = []
    for prefix, group in GROUPS.items():
        entries = [entry for entry in ENTRIES if entry.code.startswith(prefix)]
        if entries:
            lines = [f"  {each.code}  {each.name:<{width}}  {each.severity}" for each in entries]
            parts.append("\n".join([group, *lines]))
    return "\n\n".join([*parts, "trueloop explain CODE prints the page of a rule"])


def _print_page(entry: Entry) -> None:
    from trueloop.doctor.rules.pages import page_of, seen_by

    title = f"{entry.code} {entry.name}"
    text = f"{entry.severity.capitalize()}, found {seen_by(entry)}.\n\n{page_of(entry).text}"
    if sys.stdout is None or not sys.stdout.isatty():
        print(f"# {title}\n\n{text}", end="")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(highlight=False)
    console.width = min(console.width, 100)
    console.print(f"[bold]{title}[/bold]\n")
    console.print(Markdown(text, code_theme="ansi_dark", hyperlinks=False))
