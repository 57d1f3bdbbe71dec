"""The comment that suppresses a finding, and where it goes."""

from __future__ import annotations

import io
import tokenize
from typing import NamedTuple

from trueloop.doctor.static.inputs.documents import Document, Program
from trueloop.doctor.static.inputs.ignores import ignores_in


class Insertion(NamedTuple):
    """Text that is put into a line of a document."""

    line: int
    """From 1."""
    column: int
    """From 1, in characters."""
    text: str


def ignore_comment(document: Document, line: int, code: str) -> Insertion | None:
    """The text that suppresses the findings of a rule in the statement at a line; None where no
    comment can."""
    for ignore in ignores_in(document):
        if ignore.named and not ignore.whole_file and ignore.first <= line <= ignore.last:
            return Insertion(ignore.place.line, ignore.place.end_column - 1, f", {code}")
    for program in document.programs:
        last = _last_line(program, line - program.above)
        if last is not None:
            text = document.lines[last - 1].rstrip()
            return Insertion(last, len(text) + 1, f"  # trueloop: ignore[{code}]")
    return None


def _last_line(program: Program, line: int) -> int | None:
    """The document's line on which the statement at a line of a program ends; of a statement with a
    block, its head."""
    first = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(program.text).readline):
            if token.type == tokenize.NEWLINE:
                if first <= line <= token.start[0]:
                    return token.start[0] + program.above
                first = token.start[0] + 1
    except (tokenize.TokenError, SyntaxError):
        pass
    return None
