"""Opening a document of any kind."""

from __future__ import annotations

from trueloop.doctor.static.inputs.discovery import FileProblem
from trueloop.doctor.static.inputs.documents import (
    Document,
    Program,
    UnreadableError,
    decode,
    read_bytes,
)
from trueloop.doctor.static.inputs.markdown import open_markdown
from trueloop.doctor.static.inputs.notebooks import open_notebook


def open_document(path: str, data: bytes | None = None) -> Document:
    """The document at `path`, whose content is `data` if that has been read already.

    One that cannot be read has no programs, and a problem that says why.
    """
    try:
        if data is None:
            data = read_bytes(path)
        if path.endswith(".ipynb"):
            return open_notebook(path, data)
        if path.endswith(".md"):
            return open_markdown(path, decode(data, python=False))
        text = decode(data)
    except UnreadableError as error:
        return Document(path, problems=[FileProblem(path, error.line, error.message)])
    return Document(path, text, [Program(text)])


class Documents:
    """Documents by path, each opened once: for the lines that are shown of them."""

    def __init__(self) -> None:
        self._open: dict[str, Document] = {}

    def __getitem__(self, path: str) -> Document:
        found = self._open.get(path)
        if found is None:
            found = self._open[path] = open_document(path)
        return found

    def forget(self, path: str) -> None:
        """It has been changed."""
        self._open.pop(path, None)
