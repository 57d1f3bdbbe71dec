"""Markdown: each fence of Python code is a separate program."""

from __future__ import annotations

import ast
import re

from trueloop.doctor.static.inputs.documents import Document, Program
from trueloop.doctor.static.interpreter.syntax import parse

_FENCE = re.compile(r"(?P<indent>[ >]*+)(?P<mark>`{3,}+|~{3,}+)(?P<info>[^`\n]*)$")
_LANGUAGE = re.compile(r"(\{code-cell\}\s*i?|\{?\.?)(python3?|py3?)(?![\w-])", re.IGNORECASE)
_FRAGMENT = re.compile(r"#\s*(\.\.\.|…)")


def open_markdown(path: str, text: str) -> Document:
    """The document with those of its Python fences that are programs.

    A fence that does not parse, or omits parts with `...`, is prose and is skipped.
    """
    document = Document(path, text)
    lines = text.split("\n")
    opened: tuple[int, str, int, bool] | None = None
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if opened is None:
            if fence is not None:
                python = _LANGUAGE.match(fence["info"].strip()) is not None
                opened = number + 1, fence["mark"], len(fence["indent"]), python
            continue
        start, mark, indent, python = opened
        if fence is None or not _closes(fence, mark):
            continue
        opened = None
        program = _program(lines[start:number], start, indent) if python else None
        if program is not None:
            document.programs.append(program)
    return document


def _closes(fence: re.Match[str], mark: str) -> bool:
    return fence["mark"].startswith(mark) and not fence["info"].strip()


def _program(lines: list[str], start: int, indent: int) -> Program | None:
    """A fence's text; `start` lines precede it."""
    if any(line[:indent].strip(" >") for line in lines):
        return None
    code = "\n".join(line[indent:] for line in lines)
    if not code.strip() or _FRAGMENT.search(code):
        return None
    try:
        tree = parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if any(isinstance(node, ast.Constant) and node.value is ... for node in ast.walk(tree)):
        return None
    return Program(code, indent, start)
