"""The documents' fenced blocks, and the commands that print them.

A comment before a block says where it comes from:

    <!-- output: FOLDER: COMMAND -->           all that the command prints, run in a copy of
                                               tests/documents/FOLDER
    <!-- part of output: FOLDER: COMMAND -->   lines of it that follow each other
    <!-- output in: tests/FILE.py::TEST -->    that test compares it, by `shown`
    <!-- from: src/FILE.py -->                 statements of that file, in their order
    <!-- run by: tests/FILE.py -->             that test runs the program, not tests/test_docs.py
    <!-- needs: PACKAGE -->                    tests/test_docs_integration.py runs the program,
                                               where this package is installed

Programs of a page run one after the other, in one namespace: what they take for granted is defined
in tests/documents/_setup/PAGE.py, after what every page may use in _setup/_common.py.

`, figures apart` before the colon, or `apart=True`, leaves numbers and bars out of the comparison.
In a block, `…` stands for what was left out: of a line, or, alone on one, of lines. Numbers with a
unit of time, memory or share, and dates, differ from run to run and are compared as `#`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = Path(__file__).with_name("documents")
GENERATED = {"rules.md", "crib-sheet.md", "options.md"}
"""What commands write: the index of the rules, the crib sheet, the options."""
PAGES = sorted(
    f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md") if page.name not in GENERATED
)
DOCUMENTS = ("README.md", "CONTRIBUTING.md", *PAGES)
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]*)\n(?P<text>.*?)^ *```$", re.M | re.S)
_MARK = re.compile(
    r"<!-- (?:(?P<part>part of )?output(?P<apart>, figures apart)?: "
    r"(?P<folder>[\w-]+): (?P<command>.+?)"
    r"|output in: (?P<test>\S+)|from: (?P<source>\S+)|run by: (?P<runner>\S+)"
    r"|needs: (?P<needs>[\w.]+)) -->\s*\Z"
)
_VOLATILE = re.compile(r"\d[\d,.]*(?= ?(?:s|ms|µs|min|%|bytes|kB|MB|MiB|GB|GiB)(?!\w))|\d{8}-\d{6}")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    document: str
    line: int
    language: str
    text: str
    folder: str = ""
    command: str = ""
    """What prints it; empty where nothing is said."""
    part: bool = False
    apart: bool = False
    test: str = ""
    """The test that compares it."""
    source: str = ""
    """The file that it is an excerpt of."""
    runner: str = ""
    """The test that runs it."""
    needs: str = ""
    """The package that it needs."""

    @property
    def place(self) -> str:
        return f"{self.document}:{self.line}"


def blocks(document: str) -> list[Block]:
    """All fenced blocks of a document, in order."""
    text = (ROOT / document).read_text("utf-8")
    found = []
    for fence in _FENCE.finditer(text):
        mark = _MARK.search(text[: fence.start()])
        named = mark.groupdict() if mark else {}
        found.append(
            Block(
                document,
                1 + text.count("\n", 0, fence.start()),
                fence["language"],
                re.sub(f"^{fence['indent']}", "", fence["text"], flags=re.M),
                named.get("folder") or "",
                named.get("command") or "",
                bool(named.get("part")),
                bool(named.get("apart")),
                *(named.get(key) or "" for key in ("test", "source", "runner", "needs")),
            )
        )
    return found


def shown(test: str) -> list[str]:
    """The blocks that a test compares, by its name `tests/FILE.py::TEST`."""
    return [each.text for name in DOCUMENTS for each in blocks(name) if each.test == test]


def is_shown(text: str, output: str, *, part: bool = False, apart: bool = False) -> bool:
    """A block's text is the output of a command, or a part of it."""
    if apart:
        text, output = _without_figures(text), _without_figures(output)
    pattern = ""
    for line in _plain(text).rstrip("\n").split("\n"):
        exact = re.escape(line).replace("…", ".*")
        pattern += r"(?:.*\n)*?" if line.strip() == "…" else rf"{exact}\n"
    whole = _plain(output).rstrip("\n") + "\n"
    if part:
        return re.search(rf"^{pattern}", whole, re.M) is not None
    return re.fullmatch(pattern, whole) is not None


def _without_figures(text: str) -> str:
    """Numbers with their units as 0, without bars, and with single spaces."""
    text = re.sub(r"\d[\d,.]*( ?(ms|µs|s|min|KiB|MiB|GiB)(?!\w))?", "0", text)
    return re.sub(r"(?<=\S) +", " ", re.sub(r" +#+$", "", text, flags=re.M))


def _plain(text: str) -> str:
    lines = (line.rstrip() for line in text.split("\n"))
    return _VOLATILE.sub("#", "\n".join(lines))
