"""The server: when a file is checked, and what the editor gets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from trueloop import __version__
from trueloop.doctor.language_server.actions import Wanted, code_actions
from trueloop.doctor.language_server.diagnostics import SOURCE, all_diagnostics
from trueloop.doctor.language_server.open_files import Findings, OpenFile, OpenFiles
from trueloop.doctor.language_server.positions import Places
from trueloop.doctor.language_server.workspace import EditorWorkspace
from trueloop.doctor.model.findings import Finding
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.rules.loading import rules_for
from trueloop.doctor.rules.pages import markdown_of
from trueloop.doctor.static import stubs

PAUSE = 0.2
"""Seconds without typing after which a text is checked."""
STACK = 64 << 20
"""Bytes of the checking thread's stack, which some systems make small; used only as needed."""
SYNC = types.TextDocumentSyncKind.Incremental
_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    [
        types.NotebookDocumentFilterWithCells(
            [types.NotebookCellLanguage("python")],
            types.NotebookDocumentFilterNotebookType("jupyter-notebook"),
        )
    ]
)
T = TypeVar("T")


class Server(LanguageServer):
    """Checks the open files one after the other, in a thread, and publishes what is found."""

    def __init__(self) -> None:
        super().__init__(SOURCE, __version__, SYNC, _NOTEBOOKS)
        self.open: dict[str, OpenFile] = {}
        """By path: the open files as the editor has them now."""
        self.paths: dict[str, str] = {}
        """By URI, of documents, notebooks and their cells."""
        self.found = Findings()
        self.published: dict[str, list[types.Diagnostic]] = {}
        self._files = OpenFiles()
        self._fixed: dict[tuple[OpenFile, Finding | None], str] = {}
        self._due: dict[str, tuple[float, bool]] = {}
        """Paths to check: when, and whether those that use them are to be checked after it."""
        self._wake = asyncio.Event()
        self._checking: asyncio.Task[None] | None = None
        self._complaints: set[str] = set()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="check")

    @property
    def documents(self) -> EditorWorkspace:
        """The editor's open documents."""
        assert isinstance(self.workspace, EditorWorkspace)
        return self.workspace

    # -- when a file is checked -----------------------------------------------------------------

    def start(self) -> None:
        """Begin to check what is opened."""
        self._checking = asyncio.create_task(self._check_when_due())

    def take(self, file: OpenFile | None, pause: float = 0.0) -> None:
        """A file is new, or has a new text."""
        if file is None:
            return
        self.open[file.path] = file
        self.paths |= dict.fromkeys((file.uri, *file.cells), file.path)
        self.plan(file.path, pause)

    def drop(self, uri: str) -> None:
        """A file is closed."""
        path = self.paths.pop(uri, None)
        file = self.open.pop(path, None) if path is not None else None
        if file is not None:
            for cell in file.cells:
                self.paths.pop(cell, None)
            self.plan(file.path)

    def plan(self, path: str, pause: float = 0.0, *, with_users: bool = True) -> None:
        """Check a file after a pause."""
        self._due[path] = (asyncio.get_running_loop().time() + pause, with_users)
        self._wake.set()

    async def _check_when_due(self) -> None:
        """Check what is planned, for ever."""
        clock = asyncio.get_running_loop().time
        await self.in_worker(_warm_up)
        while True:
            self._wake.clear()
            path = min(self._due, key=lambda each: self._due[each][0], default=None)
            wait = None if path is None else self._due[path][0] - clock()
            if path is None or (wait is not None and wait > 0):
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), wait)
                continue
            await self.check(path)

    async def files_changed(self, paths: Set[str]) -> None:
        """Files that may not be open have changed on disk."""
        affected = set(self.open) if any(map(_is_configuration, paths)) else set()
        for path in paths - self.open.keys():
            affected.update(await self.in_worker(partial(self._files.users_of, path)))
        for path in affected:
            self.plan(path, PAUSE, with_users=False)

    async def check(self, path: str) -> None:
        """Check one file now, and publish what is found in all."""
        _, with_users = self._due.pop(path, (0.0, False))
        file = self.open.get(path)
        try:
            found, diagnostics, users = await self.in_worker(lambda: self._checked(path, file))
        except Exception as error:  # a fault of ours must not end the editor's session
            what = f"{path} was not checked: {type(error).__name__}: {error}"
            self.window_log_message(types.LogMessageParams(types.MessageType.Error, what))
            return
        self._complain(found.complaints)
        self._fixed.clear()
        self.found = found
        self._publish(path, diagnostics)
        for user in users if with_users else ():
            if user not in self._due:
                self.plan(user, with_users=False)

    def _checked(
        self, path: str, file: OpenFile | None
    ) -> tuple[Findings, dict[str, list[types.Diagnostic]], list[str]]:
        users = self._files.users_of(path)
        if file is None:
            self._files.close(path)
        else:
            self._files.update(file)
        found = self._files.findings()
        with self._files.in_place():
            return found, all_diagnostics(found, self.places(found)), users

    def places(self, found: Findings) -> Places:
        """Where the editor shows what was found."""
        return Places(self.workspace.position_codec, found.files, found.documents)

    async def in_worker(self, work: Callable[[], T]) -> T:
        """Do something in the thread that checks."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    # -- what the editor gets -------------------------------------------------------------------

    def _publish(self, checked: str, diagnostics: dict[str, list[types.Diagnostic]]) -> None:
        for uri in [*diagnostics, *(self.published.keys() - diagnostics.keys())]:
            path = self.paths.get(uri)
            if path is not None and not self.is_current(path):
                continue  # what is known is about an older text
            now = diagnostics.get(uri, [])
            if path != checked and self.published.get(uri, []) == now:
                continue
            file = self.open.get(path) if path is not None else None
            version = file.version if file is not None and not file.cells else None
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(uri, now, version)
            )
            self.published[uri] = now
            if not now and path is None:
                del self.published[uri]

    def is_current(self, path: str) -> bool:
        """The findings of a file are about the text that the editor has."""
        return self.found.files.get(path) is self.open.get(path)

    def _complain(self, complaints: list[str]) -> None:
        """Show each once, until it has been absent."""
        for text in dict.fromkeys(complaints):
            if text not in self._complaints:
                shown = types.ShowMessageParams(types.MessageType.Error, f"Trueloop: {text}")
                self.window_show_message(shown)
        self._complaints = set(complaints)

    # -- what the editor asks -------------------------------------------------------------------

    async def actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        path = self.paths.get(uri)
        if path is None:
            return []
        if not self.is_current(path):
            await self.check(path)
        file, found = self.open.get(path), self.found
        if file is None or found.files.get(path) is not file:
            return []  # it does not parse
        findings = found.by_path.get(path, [])
        wanted = Wanted(
            uri,
            params.range,
            params.context.diagnostics,
            _names(params.context.only),
            self._knows_versions(),
        )

        def fixed(finding: Finding | None) -> str:
            key = file, finding
            if key not in self._fixed:
                self._fixed[key] = self._files.fixed(file, findings, finding)
            return self._fixed[key]

        def made() -> list[types.CodeAction]:
            with self._files.in_place():
                return code_actions(wanted, file, findings, self.places(found), fixed)

        return await self.in_worker(made)

    def _knows_versions(self) -> bool:
        workspace = self.client_capabilities.workspace
        edits = workspace.workspace_edit if workspace is not None else None
        return edits is not None and bool(edits.document_changes)

    def hover(self, params: types.HoverParams) -> types.Hover | None:
        """The pages of the rules whose findings are at a position, or whose codes are written
        there."""
        uri, at = params.text_document.uri, params.position
        codes = {
            str(each.code): each.range
            for each in self.published.get(uri, [])
            if each.code is not None and each.range.start <= at < each.range.end
        }
        word = self.workspace.get_text_document(uri).word_at_position(at)
        if word in BY_CODE:
            codes.setdefault(word, types.Range(at, at))
        pages = [markdown_of(BY_CODE[code]) for code in codes]
        if not pages:
            return None
        text = types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(pages))
        return types.Hover(text, None if word in codes else next(iter(codes.values())))


def _is_configuration(path: str) -> bool:
    return os.path.basename(path) == "pyproject.toml"


def _names(kinds: Sequence[types.CodeActionKind | str] | None) -> list[str] | None:
    if kinds is None:
        return None
    return [each.value if isinstance(each, types.CodeActionKind) else each for each in kinds]


def _warm_up() -> None:
    """Load what the first check needs."""
    stubs.register()
    rules_for("S")
