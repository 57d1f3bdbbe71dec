"""The methods of the protocol that the server answers."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from lsprotocol import types

from trueloop.doctor.language_server.actions import KINDS
from trueloop.doctor.language_server.server import PAUSE, STACK, SYNC, Server
from trueloop.doctor.language_server.workspace import EditorWorkspace

WATCHED = ("**/*.py", "**/pyproject.toml")
"""Files whose changes on disk the editor is asked to report."""


def serve() -> None:
    """Serve an editor on stdin and stdout, until it says good-bye."""
    threading.stack_size(STACK)
    stdout, sys.stdout = sys.stdout, sys.stderr  # nothing else may be written to the editor
    try:
        with open(os.dup(stdout.fileno()), "wb") as pipe:  # which pygls closes
            make_server().start_io(stdout=pipe)
    finally:
        sys.stdout = stdout


def make_server() -> Server:
    """A server with all its methods."""
    server = Server()
    for method, handler in _HANDLERS.items():
        server.feature(method)(handler)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(list(KINDS)))(actions)
    return server


def initialize(ls: Server, params: types.InitializeParams) -> None:
    plain = ls.workspace
    ls.protocol._workspace = EditorWorkspace(
        plain.root_uri, SYNC, params.workspace_folders, plain.position_encoding
    )


async def initialized(ls: Server, params: types.InitializedParams) -> None:
    ls.start()
    workspace = ls.client_capabilities.workspace
    watching = workspace.did_change_watched_files if workspace is not None else None
    if watching is not None and watching.dynamic_registration:
        watchers = [types.FileSystemWatcher(pattern) for pattern in WATCHED]
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        await ls.client_register_capability_async(
            types.RegistrationParams([types.Registration("watched", method, options)])
        )


def did_open(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    ls.take(ls.documents.open_file(params.text_document.uri))


def did_change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    ls.take(ls.documents.open_file(params.text_document.uri), PAUSE)


def did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    ls.drop(params.text_document.uri)


def notebook_did_open(ls: Server, params: types.DidOpenNotebookDocumentParams) -> None:
    ls.take(ls.documents.open_notebook(params.notebook_document.uri))


def notebook_did_change(ls: Server, params: types.DidChangeNotebookDocumentParams) -> None:
    ls.take(ls.documents.open_notebook(params.notebook_document.uri), PAUSE)


def notebook_did_close(ls: Server, params: types.DidCloseNotebookDocumentParams) -> None:
    ls.drop(params.notebook_document.uri)


async def watched_files(ls: Server, params: types.DidChangeWatchedFilesParams) -> None:
    await ls.files_changed({ls.documents.path_of(each.uri) for each in params.changes})


async def actions(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    return await ls.actions(params)


def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    return ls.hover(params)


_HANDLERS: dict[str, Callable[..., Any]] = {
    types.INITIALIZE: initialize,
    types.INITIALIZED: initialized,
    types.TEXT_DOCUMENT_DID_OPEN: did_open,
    types.TEXT_DOCUMENT_DID_CHANGE: did_change,
    types.TEXT_DOCUMENT_DID_CLOSE: did_close,
    types.NOTEBOOK_DOCUMENT_DID_OPEN: notebook_did_open,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: notebook_did_change,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: notebook_did_close,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: watched_files,
    types.TEXT_DOCUMENT_HOVER: hover,
}
