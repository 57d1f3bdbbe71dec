"""The documents of the editor, as pygls keeps them, and the files that they are."""

from __future__ import annotations

import os
from typing import Any

from lsprotocol import types
from pygls import uris
from pygls.workspace import TextDocument, Workspace

from trueloop.doctor.language_server.open_files import OpenFile, notebook_text
from trueloop.doctor.static.fixes.edits import LINE

SCHEMES = ("file", "untitled")
"""A cell of a notebook has its own, and belongs to the notebook."""


class EditorDocument(TextDocument):
    """A text whose lines end where the protocol says. pygls ends them at form feeds and other
    characters as well, and an edit below one would go to a different line."""

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(LINE.findall(self.source))


class EditorWorkspace(Workspace):
    """The editor's open documents."""

    def _create_text_document(self, doc_uri: str, *args: Any, **kwargs: Any) -> EditorDocument:
        plain = super()._create_text_document(doc_uri, *args, **kwargs)
        return EditorDocument(
            doc_uri,
            source=plain._source,
            version=plain.version,
            language_id=plain.language_id,
            position_codec=plain.position_codec,
        )

    def path_of(self, uri: str) -> str:
        """The absolute path of a document; of one that was never saved, where it might be."""
        path = uris.to_fs_path(uri)
        if path is None:
            name = uris.urlparse(uri)[2].lstrip("/").replace("/", "_")
            kind = "" if name.endswith((".py", ".ipynb", ".md")) else ".py"
            path = os.path.join(self.root_path or os.getcwd(), f"{name}{kind}")
        return os.path.abspath(path)

    def open_file(self, uri: str) -> OpenFile | None:
        """A text document as a file; None for one that is not checked."""
        document = self.get_text_document(uri)
        path = self.path_of(uri)
        is_text = document.language_id == "python" or path.endswith(".md")
        if uris.uri_scheme(uri) not in SCHEMES or path.endswith(".ipynb") or not is_text:
            return None
        return OpenFile(path, uri, document.source, document.version)

    def open_notebook(self, uri: str) -> OpenFile | None:
        """A notebook as a file; None for one that is not open."""
        notebook = self.get_notebook_document(notebook_uri=uri)
        if notebook is None:
            return None
        documents = [
            self.get_text_document(cell.document)
            for cell in notebook.cells
            if cell.kind == types.NotebookCellKind.Code
        ]
        python = [each for each in documents if each.language_id == "python"]
        path = self.path_of(uri)
        return OpenFile(
            path if path.endswith(".ipynb") else f"{path}.ipynb",
            uri,
            notebook_text([each.source for each in python]),
            notebook.version,
            tuple(each.uri for each in python),
        )
