"""A real client of the language server, over the pipes of one process."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds after which a test fails: the machine may be busy."""


class Editor:
    """An editor with one folder open."""

    def __init__(self, folder: Path, *, encoding: str = "utf-16") -> None:
        self.folder = folder
        self.published: dict[str, list[types.PublishDiagnosticsParams]] = {}
        self.messages: list[str] = []
        self.registered: list[types.Registration] = []
        self._news = threading.Condition()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.client = LanguageClient("tests", "0")
        self._listen()
        self.capabilities = self._do(self._start(encoding)).capabilities

    def _listen(self) -> None:
        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            with self._news:
                self.published.setdefault(params.uri, []).append(params)
                self._news.notify_all()

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        @self.client.feature(types.WINDOW_LOG_MESSAGE)
        def message(params: Any) -> None:
            with self._news:
                self.messages.append(params.message)
                self._news.notify_all()

        @self.client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def register(params: types.RegistrationParams) -> None:
            self.registered += params.registrations

    async def _start(self, encoding: str) -> types.InitializeResult:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        await self.client.start_io(
            sys.executable, "-m", "trueloop", "lsp", "--stdio", cwd=self.folder, env=environment
        )
        capabilities = types.ClientCapabilities(
            notebook_document=types.NotebookDocumentClientCapabilities(
                types.NotebookDocumentSyncClientCapabilities()
            ),
            general=types.GeneralClientCapabilities(position_encodings=[encoding]),
            workspace=types.WorkspaceClientCapabilities(
                workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
                did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(
                    dynamic_registration=True
                ),
            ),
        )
        result = await self.client.initialize_async(
            types.InitializeParams(capabilities, root_uri=self.folder.as_uri())
        )
        self.client.initialized(types.InitializedParams())
        return result

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def tell(self, notify: Callable[[Any], None], params: Any) -> None:
        self._loop.call_soon_threadsafe(notify, params)

    def close(self) -> int:
        """Say good-bye; the server's exit status."""
        self._do(self.client.shutdown_async(None))
        self.tell(self.client.exit, None)
        server = self.client._server
        assert server is not None
        status = self._do(server.wait())
        print(self._do(server.stderr.read()).decode())
        self._loop.call_soon_threadsafe(self._loop.stop)
        return status

    # -- what an editor does --------------------------------------------------------------------

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(
        self, name: str, text: str, *, uri: str | None = None, language: str = "python"
    ) -> list[types.Diagnostic]:
        """Open a file with a text, which may not be on disk; its diagnostics."""
        uri = uri or self.uri(name)
        item = types.TextDocumentItem(uri, language, 1, text)
        self.tell(
            self.client.text_document_did_open,
            types.DidOpenTextDocumentParams(item),
        )
        return self.diagnostics(uri, version=1)

    def type(self, name: str, version: int, *changes: Any) -> None:
        """Change a text: by whole texts, or by (range, text)."""
        events: list[Any] = [
            types.TextDocumentContentChangeWholeDocument(each)
            if isinstance(each, str)
            else types.TextDocumentContentChangePartial(range=each[0], text=each[1])
            for each in changes
        ]
        document = types.VersionedTextDocumentIdentifier(version, self.uri(name))
        self.tell(
            self.client.text_document_did_change,
            types.DidChangeTextDocumentParams(document, events),
        )

    def shut(self, *names: str) -> None:
        for name in names:
            document = types.TextDocumentIdentifier(self.uri(name))
            self.tell(
                self.client.text_document_did_close, types.DidCloseTextDocumentParams(document)
            )

    def diagnostics(self, uri: str, *, version: int) -> list[types.Diagnostic]:
        """Those of one version of a document, once they come."""
        found = self.wait(
            lambda: next((p for p in self.published.get(uri, []) if p.version == version), None)
        )
        return list(found.diagnostics)

    def wait(self, look: Callable[[], T | None]) -> T:
        """What is looked for, once it is there."""
        seen: list[T | None] = []

        def is_there() -> bool:
            seen.append(look())
            return bool(seen[-1])

        with self._news:
            assert self._news.wait_for(is_there, PATIENCE), self.messages
        found = seen[-1]
        assert found is not None
        return found

    def actions(
        self, name: str, line: int, *, only: list[str] | None = None, uri: str | None = None
    ) -> list[types.CodeAction]:
        """The code actions at a line, from 0."""
        uri = uri or self.uri(name)
        at = types.Position(line, 0)
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(uri),
            types.Range(at, at),
            types.CodeActionContext(self.latest(uri), only=only),
        )
        found = self._do(self.client.text_document_code_action_async(params))
        return [each for each in found or [] if isinstance(each, types.CodeAction)]

    def latest(self, uri: str) -> list[types.Diagnostic]:
        return list(self.published[uri][-1].diagnostics) if uri in self.published else []

    def hover(self, name: str, line: int, character: int) -> str | None:
        params = types.HoverParams(
            types.TextDocumentIdentifier(self.uri(name)), types.Position(line, character)
        )
        found = self._do(self.client.text_document_hover_async(params))
        return None if found is None else found.contents.value  # type: ignore[union-attr]


def applied(text: str, action: types.CodeAction) -> str:
    """A text after the edits of an action, which are all in one document."""
    assert action.edit is not None
    edits = list((action.edit.changes or {}).values())
    edits += [change.edits for change in action.edit.document_changes or []]
    (own,) = edits
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)

    def offset(at: types.Position) -> int:
        # In UTF-16, as editors count.
        before = "".join(lines[: at.line])
        line = "".join(lines[at.line :]).encode("utf-16-le")[: 2 * at.character]
        return len(before) + len(line.decode("utf-16-le"))

    for edit in sorted(own, key=lambda each: offset(each.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


def as_action(edits: list[types.TextEdit]) -> types.CodeAction:
    return types.CodeAction("", edit=types.WorkspaceEdit(changes={"file:///a.py": edits}))
