"""The files that an editor has open, and what `trueloop check` of all of them finds.

Everything here runs in one thread, which is not the one that talks to the editor.
"""

from __future__ import annotations

import io
import json
import tokenize
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from trueloop.doctor.config import Configs
from trueloop.doctor.model.findings import Finding
from trueloop.doctor.static.checking import selected_findings
from trueloop.doctor.static.fixes.apply import fix_one, fix_until_done
from trueloop.doctor.static.fixes.fix_files import found_in
from trueloop.doctor.static.inputs.cache import Examined
from trueloop.doctor.static.inputs.discovery import is_in_skipped_folder
from trueloop.doctor.static.inputs.documents import is_python
from trueloop.doctor.static.inputs.examine import examine, forget_projects
from trueloop.doctor.static.inputs.open_document import Documents
from trueloop.doctor.static.inputs.unsaved import in_place_of_files
from trueloop.doctor.static.inputs.unused_code import UnusedCode
from trueloop.doctor.static.interpreter.syntax import parse
from trueloop.errors import ConfigError


@dataclass(frozen=True)
class OpenFile:
    """A file as the editor has it now."""

    path: str
    """Absolute."""
    uri: str
    text: str
    """Of a notebook: its code cells as the JSON of a notebook."""
    version: int | None = None
    cells: tuple[str, ...] = ()
    """The URIs of a notebook's code cells."""

    @property
    def data(self) -> bytes:
        """The bytes of a file with this text, in the encoding that it declares."""
        data = self.text.encode("utf-8", "surrogatepass")
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            return self.text.encode(encoding)
        except (SyntaxError, UnicodeError, LookupError):
            return data

    def parses(self) -> bool:
        """Python would read it, if it is a Python file."""
        if not is_python(self.path):
            return True
        try:
            parse(self.text)
        except (SyntaxError, ValueError):
            return False
        except (RecursionError, MemoryError):
            pass  # which the checker reports
        return True


def _is_excluded(path: str) -> bool:
    if is_in_skipped_folder(path):
        return True
    try:
        return Configs().excludes(path)
    except ConfigError:
        return False  # `findings` complains of it


def notebook_text(cells: Sequence[str]) -> str:
    """Code cells as the JSON of a notebook."""
    return json.dumps({"cells": [{"cell_type": "code", "source": source} for source in cells]})


@dataclass
class Findings:
    """The findings of one moment."""

    by_path: dict[str, list[Finding]] = field(default_factory=dict)
    """Of all open files, and of others that they use."""
    documents: Documents = field(default_factory=Documents)
    remarks: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Files that could not be read, or not to their end: line (0 for none) and reason."""
    complaints: list[str] = field(default_factory=list)
    """About settings that keep files from being checked."""
    files: dict[str, OpenFile] = field(default_factory=dict)
    """The open files as they were checked."""


class OpenFiles:
    """The open files, each as it was when it last parsed."""

    def __init__(self) -> None:
        self.files: dict[str, OpenFile] = {}
        self._examined: dict[str, Examined] = {}
        self._unused = UnusedCode()

    def update(self, file: OpenFile) -> None:
        """Read a file that is new, has a new text, or imports one that has; while its text does not
        parse, what was found before stays."""
        if file.path in self.files and not file.parses():
            return
        if file.path not in self.files:
            self._unused = UnusedCode()  # any file may have changed
        self.files[file.path] = file
        self._examined.pop(file.path, None)
        if not _is_excluded(file.path):
            with self.in_place():
                forget_projects()
                self._unused.read_again(file.path)
                self._examined[file.path] = examine(file.path)

    def close(self, path: str) -> None:
        """The editor no longer has it: others read what is on disk."""
        self.files.pop(path, None)
        self._examined.pop(path, None)
        self._unused = UnusedCode()

    def users_of(self, path: str) -> list[str]:
        """The other open files that were read together with the file at `path`."""
        return [
            user
            for user, examined in self._examined.items()
            if user != path and any(other == path for other, _ in examined.followed)
        ]

    def findings(self) -> Findings:
        """All that is selected, with a complaint for each pyproject.toml that cannot be."""
        found = Findings(files=dict(self.files))
        configs = Configs()
        examined = {}
        for path, each in self._examined.items():
            try:
                configs.of(path)
                examined[path] = each
            except ConfigError as error:
                found.complaints.append(str(error))
        with self.in_place():
            chosen = selected_findings(
                list(examined.values()), configs, found.documents, self._unused
            )
        for finding in chosen:
            found.by_path.setdefault(finding.place.path, []).append(finding)
        for path, each in examined.items():
            remarks = [(problem.line, problem.message) for problem in each.problems]
            if remarks and not self.files[path].parses():
                remarks = []  # which the editor's own support of Python reports
            if each.unread is not None:
                remarks.append((each.unread.line, each.unread.message))
            found.remarks[path] = remarks
        return found

    def fixed(self, file: OpenFile, findings: Sequence[Finding], only: Finding | None) -> str:
        """The text with the remedies of one finding, or of all; the very text if no edit proves
        right."""
        config = Configs().of(file.path)
        with self.in_place():
            forget_projects()

            def check(text: str) -> list[Finding]:
                return found_in(text, file.path, config)

            try:
                if only is not None:
                    return fix_one(file.text, only, findings, check)
                return fix_until_done(file.text, findings, check).text
            except (SyntaxError, RecursionError):  # of the text with the fix
                return file.text

    def in_place(self) -> AbstractContextManager[None]:
        """Whatever reads a file that is open reads the editor's text."""
        return in_place_of_files({path: file.data for path, file in self.files.items()})
