"""Notebooks: the code cells joined to one program, in their order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from trueloop.doctor.static.inputs.discovery import FileProblem
from trueloop.doctor.static.inputs.documents import (
    CODE_LIMIT,
    Document,
    Program,
    UnreadableError,
    decode,
)
from trueloop.doctor.static.interpreter.syntax import parse

PYTHON_CELL_MAGICS = frozenset({"%%time", "%%timeit", "%%capture", "%%prun", "%%memray_flamegraph"})
"""Cell magics below which the cell is still Python; any other makes it something else."""
_ASSIGNED_MAGIC = re.compile(r"(\s*+[\w.,\[\]'\"][\w.,\[\]'\" ]*+=\s*+)[!%](?!=)")


def open_notebook(path: str, data: bytes) -> Document:
    """The notebook's code cells as one document; a cell that does not parse is omitted from the
    program and noted. Raises `UnreadableError` for a file that is not a notebook."""
    notebook = _load(data)
    document = Document(path)
    if not _is_python(notebook):
        return document
    shown: list[str] = []
    program: list[str] = []
    cells: list[tuple[int, int]] = []
    for number, source in _code_cells(notebook):
        lines = source.split("\n")
        cells.append((len(shown) + 1, number))
        code, complaint = _python_of(lines)
        if complaint is not None:
            line, message = complaint
            document.problems.append(FileProblem(path, len(shown) + line, message))
        shown += lines
        program += code
    document.text = "\n".join(shown)
    document.cells = tuple(cells)
    if len(document.text) > CODE_LIMIT:
        raise UnreadableError(0, f"contains more than {CODE_LIMIT / 1e6:g} MB of code: split it")
    if cells:
        document.programs.append(Program("\n".join(program)))
    return document


def _load(data: bytes) -> dict[str, Any]:
    if not data.strip():
        return {}  # what `touch` leaves, and Jupyter opens as a new one
    try:
        notebook = json.loads(decode(data, python=False))
    except json.JSONDecodeError as error:
        raise UnreadableError(error.lineno, "is not a notebook: it is not valid JSON") from None
    except (RecursionError, ValueError):  # numbers of more digits than Python takes
        raise UnreadableError(0, "is not a notebook: its JSON is too deep or too long") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("metadata", {}), dict):
        raise UnreadableError(0, "is not a notebook: it contains other JSON")
    return notebook


def _is_python(notebook: dict[str, Any]) -> bool:
    metadata = notebook.get("metadata", {})
    for section, key in (("kernelspec", "language"), ("language_info", "name")):
        part = metadata.get(section)
        if isinstance(part, dict) and isinstance(part.get(key), str):
            return str(part[key]).lower() in ("python", "ipython")
    return True


def _code_cells(notebook: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """(number among all cells, from 1; text) of each code cell; also of the old format 3."""
    cells = notebook.get("cells")
    if cells is None:
        sheets = notebook.get("worksheets")
        cells = []
        for sheet in sheets if isinstance(sheets, list) else []:
            more = sheet.get("cells") if isinstance(sheet, dict) else None
            cells += more if isinstance(more, list) else []
    if not isinstance(cells, list):
        raise UnreadableError(0, "is not a notebook: its cells are not a list")
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", cell.get("input", ""))
        if isinstance(source, list):
            source = "".join(map(str, source))
        text = re.sub(r"\r\n?", "\n", str(source))
        yield number, text.removesuffix("\n")


def _python_of(lines: list[str]) -> tuple[list[str], tuple[int, str] | None]:
    """A cell's lines as plain Python, as many as they were, and what is wrong with them."""
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%"):
        if first.split()[0] not in PYTHON_CELL_MAGICS:
            return [""] * len(lines), None
        lines = ["" if line is first else line for line in lines]
    if _complaint(lines) is None:
        return lines, None
    plain = without_magics(lines)
    complaint = _complaint(plain)
    return (plain, None) if complaint is None else ([""] * len(lines), complaint)


def _complaint(lines: list[str]) -> tuple[int, str] | None:
    """(line, why) if a cell does not parse. `await` at its top is allowed, as in Jupyter."""
    try:
        parse("\n".join(lines))
    except SyntaxError as error:
        return min(error.lineno or 1, len(lines)), f"does not parse ({error.msg})"
    except (RecursionError, MemoryError):
        return 1, "is nested too deeply to be read"
    except ValueError as error:  # null bytes, halves of characters
        return 1, f"does not parse ({error})"
    return None


def without_magics(lines: list[str]) -> list[str]:
    """A cell's lines with IPython's own syntax put out of the way, line by line: `%magic`, `!shell`
    and `?help` become `pass`, and what is assigned from one becomes a call that nobody knows."""
    plain: list[str] = []
    within = _Within()
    goes_on = False
    for line in lines:
        if goes_on:  # a magic that the line before continued
            plain.append("")
        elif within.statement:
            plain.append(line)
        else:
            plain.append(_plain(line))
            if plain[-1] is not line:
                goes_on = line.endswith("\\")
                continue
        if goes_on:
            goes_on = line.endswith("\\")
        else:
            within.see(line)
    return plain


def _plain(line: str) -> str:
    """A line that begins a statement, without magic; the very same text if there is none."""
    text = line.strip()
    indent = line[: len(line) - len(line.lstrip())]
    if text.startswith(("%", "!", "?")):
        return f"{indent}pass"
    if text.endswith("?") and not text.startswith("#") and "#" not in text:
        return f"{indent}pass"
    assigned = _ASSIGNED_MAGIC.match(line)
    return f"{assigned[1]}get_ipython().magic()" if assigned else line


class _Within:
    """Whether the next line continues a statement: an open bracket, string or backslash."""

    def __init__(self) -> None:
        self.brackets = 0
        self.quote = ""
        self.backslash = False

    @property
    def statement(self) -> bool:
        return bool(self.brackets or self.quote or self.backslash)

    def see(self, line: str) -> None:
        position = 0
        self.backslash = False
        while position < len(line):
            character = line[position]
            if character == "\\":
                self.backslash = position == len(line) - 1
                position += 2
                continue
            if self.quote:
                if line.startswith(self.quote, position):
                    position += len(self.quote)
                    self.quote = ""
                    continue
            elif character == "#":
                break
            elif character in "\"'":
                self.quote = (
                    character * 3 if line.startswith(character * 3, position) else character
                )
                position += len(self.quote)
                continue
            elif character in "([{":
                self.brackets += 1
            elif character in ")]}":
                self.brackets = max(0, self.brackets - 1)
            position += 1
        if len(self.quote) == 1 and not self.backslash:
            self.quote = ""  # ends with its line, whatever it was
