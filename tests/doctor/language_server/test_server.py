"""`trueloop lsp`, as an editor sees it: one process for all tests, on its pipes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from lsprotocol import types

from doctor.language_server.editor import Editor, applied
from trueloop.doctor.config import Configs
from trueloop.doctor.report.json_object import as_json
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.rules.pages import page_of
from trueloop.doctor.static.checking import check

FAULTY = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(10):
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
    losses.append(loss)
print(torch.stack(losses).mean())
"""
RIGHT = FAULTY.replace("    optimizer.zero_grad()\n", "").replace(
    "    loss.backward()\n", "    optimizer.zero_grad()\n    loss.backward()\n"
)
SEVERITY = {"error": 1, "warning": 2, "advice": 3}


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    editor = Editor(tmp_path_factory.mktemp("project"))
    editor.folder.joinpath("pyproject.toml").write_text("[tool.trueloop]\n")
    yield editor
    assert editor.close() == 0
    assert editor.messages == []


def codes(diagnostics: list[types.Diagnostic]) -> list[object]:
    return [each.code for each in diagnostics]


def test_what_an_editor_shows_is_what_check_finds(editor: Editor) -> None:
    shown = editor.open("train.py", FAULTY)
    path = editor.folder / "train.py"
    path.write_text(FAULTY)
    found = json.loads(as_json(check([str(path)], Configs()), None))["findings"]
    assert [
        (each["code"], SEVERITY[each["severity"]], each["line"], each["column"]) for each in found
    ] == [
        (each.code, each.severity, each.range.start.line + 1, each.range.start.character + 1)
        for each in shown
    ]
    assert codes(shown) == ["TL101", "TL204"]
    first = shown[0]
    assert first.message == f"{found[0]['message']}\n{found[0]['fix']}"
    assert first.range.end == types.Position(9, len("    optimizer.zero_grad()"))
    assert first.code_description is not None
    page = Path(unquote(urlparse(first.code_description.href).path))
    assert page_of(BY_CODE["TL101"]).summary in page.read_text()
    assert [
        (each.location.uri, each.location.range.start.line, each.message)
        for each in first.related_information or ()
    ] == [
        (editor.uri("train.py"), 8, "computes the gradients"),
        (editor.uri("train.py"), 10, "has no gradients to apply"),
    ]


def test_a_text_is_checked_as_it_is_typed(editor: Editor) -> None:
    """Every way to the same text gives the same findings, past characters of which editors count
    two units, and form feeds, which end no line."""
    odd = f"# 🙂\x0c\u2028\n{FAULTY}".replace("losses = []", "losses = []; name = '🙂'")
    editor.open("typed.py", "")
    editor.type("typed.py", 2, odd)
    assert [
        each.range.start.line for each in editor.diagnostics(editor.uri("typed.py"), version=2)
    ] == [10, 12]
    # The line of zero_grad goes, one comes above backward, and a name changes, all at once.
    line = types.Range(types.Position(10, 0), types.Position(11, 0))
    above = types.Range(types.Position(9, 0), types.Position(9, 0))
    face = types.Range(types.Position(6, 21), types.Position(6, 23))
    cleared = "    optimizer.zero_grad()  # 🙂\n"
    editor.type("typed.py", 3, (line, ""), (above, cleared), (face, "👍"))
    (left,) = editor.diagnostics(editor.uri("typed.py"), version=3)
    assert (left.code, left.range.start.line) == ("TL204", 12)
    ignored = "  # trueloop: ignore[TL204]"
    end = types.Position(12, len("    losses.append(loss)"))
    editor.type("typed.py", 4, (types.Range(end, end), ignored))
    assert editor.diagnostics(editor.uri("typed.py"), version=4) == []


HIDDEN = """\
from torch import nn

class Hidden(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4)]

    def forward(self, x):
        return self.layers[0](x)
"""


def test_a_class_is_used_as_soon_as_that_is_typed(editor: Editor) -> None:
    for name, text in (("hidden.py", HIDDEN), ("user.py", "print(1)\n")):
        editor.folder.joinpath(name).write_text(text)
    (found,) = editor.open("hidden.py", HIDDEN)
    assert (found.code, found.severity) == ("TL303", SEVERITY["advice"])
    editor.open("user.py", "from hidden import Hidden\nprint(1)\n")
    editor.type("user.py", 2, "from hidden import Hidden\nmodel = Hidden()\n")
    uri = editor.uri("hidden.py")
    error = SEVERITY["error"]
    editor.wait(lambda: [each for each in editor.latest(uri) if each.severity == error])
    editor.shut("hidden.py", "user.py")
    for name in ("hidden.py", "user.py"):
        editor.folder.joinpath(name).unlink()


def test_fast_typing_is_checked_once_it_pauses(editor: Editor) -> None:
    editor.open("fast.py", "")
    for version in range(2, 40):
        editor.type("fast.py", version, FAULTY[: version * 10])
    editor.type("fast.py", 40, FAULTY)
    assert codes(editor.diagnostics(editor.uri("fast.py"), version=40)) == ["TL101", "TL204"]
    assert len(editor.published[editor.uri("fast.py")]) < 20


def test_while_a_text_does_not_parse_what_was_found_stays(editor: Editor) -> None:
    uri = editor.uri("broken.py")
    assert editor.open("broken.py", "for (\x00") == []
    editor.type("broken.py", 2, FAULTY)
    editor.diagnostics(uri, version=2)
    for version, text in enumerate(["def f(:\n", "(" * 3000, FAULTY + "if", "\ud800", "é = '"], 3):
        editor.type("broken.py", version, text)
        assert editor.actions("broken.py", 9) == []
    assert codes(editor.latest(uri)) == ["TL101", "TL204"]
    editor.type("broken.py", 9, RIGHT)
    assert codes(editor.diagnostics(uri, version=9)) == ["TL204"]


def test_a_change_of_a_module_reaches_the_open_files_that_import_it(editor: Editor) -> None:
    update = [
        "def update(optimizer, loss):",
        "    loss.backward()",
        "    optimizer.step()",
        "    optimizer.zero_grad()",
    ]
    module = "\n".join(update)
    wrong = "\n".join([*update[:2], update[3], update[2]])
    editor.folder.joinpath("updates.py").write_text(module)
    program = f"from updates import update\n{RIGHT}"
    for name in ("zero_grad", "step"):
        program = program.replace(f"    optimizer.{name}()\n", "")
    program = program.replace("    losses.append(loss)\n", "").replace(
        "loss.backward()", "update(optimizer, loss)"
    )
    assert editor.open("main.py", program) == []
    editor.open("updates.py", module)
    uri = editor.uri("updates.py")
    editor.type("updates.py", 2, wrong)
    found = editor.wait(lambda: [each for each in editor.latest(uri) if each.code == "TL101"])
    assert found[0].range.start.line == 2
    editor.type("updates.py", 3, module)
    editor.wait(lambda: not editor.latest(uri))
    # On disk, with the editor's file closed.
    editor.shut("updates.py")
    editor.folder.joinpath("updates.py").write_text(wrong)
    changed = types.FileEvent(uri, types.FileChangeType.Changed)
    editor.tell(
        editor.client.workspace_did_change_watched_files,
        types.DidChangeWatchedFilesParams([changed]),
    )
    editor.wait(lambda: codes(editor.latest(uri)) == ["TL101"])
    editor.shut("main.py")
    editor.wait(lambda: not editor.latest(uri))


def test_the_edits_of_fix_are_code_actions(editor: Editor) -> None:
    text = FAULTY.replace("\n", "\r\n")
    editor.open("fix.py", text)
    fix, ignore, everything = editor.actions("fix.py", 9)
    assert (fix.title, fix.kind, fix.is_preferred) == (
        "Call `zero_grad()` before the forward pass, or after the step. (TL101)",
        types.CodeActionKind.QuickFix,
        True,
    )
    assert codes(list(fix.diagnostics or [])) == ["TL101"]
    moved = FAULTY.replace("    optimizer.zero_grad()\n", "").replace(
        "    optimizer.step()\n", "    optimizer.step()\n    optimizer.zero_grad()\n"
    )
    assert applied(text, fix) == moved.replace("\n", "\r\n")
    assert (ignore.title, ignore.kind) == ("Ignore TL101 here", types.CodeActionKind.QuickFix)
    assert applied(text, ignore) == text.replace(
        "zero_grad()", "zero_grad()  # trueloop: ignore[TL101]"
    )
    assert everything.kind == "source.fixAll.trueloop"
    mended = moved.replace("append(loss)", "append(loss.detach())")
    assert applied(text, everything) == mended.replace("\n", "\r\n")
    assert everything.edit is not None
    (edit,) = everything.edit.document_changes or ()
    assert isinstance(edit, types.TextDocumentEdit)
    assert edit.text_document.version == 1


def test_an_editor_may_ask_for_some_actions_alone(editor: Editor) -> None:
    editor.open("some.py", FAULTY)
    assert editor.actions("some.py", 0, only=["quickfix"]) == []
    assert len(editor.actions("some.py", 9, only=["quickfix"])) == 2
    for kind in ("source", "source.fixAll", "source.fixAll.trueloop"):
        (found,) = editor.actions("some.py", 0, only=[kind])
        assert found.kind == "source.fixAll.trueloop"
    assert editor.actions("some.py", 9, only=["source.organizeImports", "source.fixAll.ruff"]) == []
    # Asked for before what was typed has been checked, as an editor does that fixes when it saves.
    editor.type("some.py", 2, RIGHT)
    (found,) = editor.actions("some.py", 0, only=["source.fixAll"])
    assert applied(RIGHT, found) == RIGHT.replace("append(loss)", "append(loss.detach())")


def test_the_page_of_a_rule_is_shown_on_hover(editor: Editor) -> None:
    editor.open("hover.py", f"{FAULTY}x = 1  # trueloop: ignore[TL401]\n")
    page = editor.hover("hover.py", 9, 12) or ""
    assert page.startswith("# TL101 zero-grad-after-backward\n")
    assert page_of(BY_CODE["TL101"]).text in page
    assert editor.hover("hover.py", 9, 2) is None
    assert editor.hover("hover.py", 40, 2) is None
    assert "# TL401 softmax" in (editor.hover("hover.py", 13, 30) or "")


def test_settings_come_from_pyproject(editor: Editor) -> None:
    folder = editor.folder / "sub"
    folder.mkdir()
    settings = folder / "pyproject.toml"
    settings.write_text('[tool.trueloop]\nignore = ["TL204"]\nexclude = ["third_party"]\n')
    assert codes(editor.open("sub/a.py", FAULTY)) == ["TL101"]
    assert editor.open("sub/third_party/a.py", FAULTY) == []
    uri = editor.uri("sub/a.py")

    def rewrite(text: str) -> None:
        settings.write_text(text)
        changed = types.FileEvent(settings.as_uri(), types.FileChangeType.Changed)
        editor.tell(
            editor.client.workspace_did_change_watched_files,
            types.DidChangeWatchedFilesParams([changed]),
        )

    rewrite('[tool.trueloop]\nselect = ["TL2"]\n')
    editor.wait(lambda: codes(editor.latest(uri)) == ["TL204"])
    rewrite('[tool.trueloop]\nselect = ["TL999"]\n')
    message = editor.wait(lambda: editor.messages.pop() if editor.messages else None)
    assert "pyproject.toml, [tool.trueloop] select: unknown rule 'TL999'" in message
    rewrite("[tool.trueloop]\n")
    editor.wait(lambda: codes(editor.latest(uri)) == ["TL101", "TL204"])
    assert [each.method for each in editor.registered] == ["workspace/didChangeWatchedFiles"]
    editor.shut("sub/a.py", "sub/third_party/a.py")


def test_files_that_check_would_not_read_are_not_read(editor: Editor) -> None:
    assert editor.open("lib/site-packages/torch/a.py", FAULTY) == []
    assert codes(editor.open("", FAULTY, uri="untitled:Untitled-1")) == ["TL101", "TL204"]
    markdown = f"Some text.\n\n```python\n{FAULTY}```\n"
    assert codes(editor.open("notes.md", markdown, language="markdown")) == ["TL101", "TL204"]
    item = types.TextDocumentItem("git:/old/train.py", "python", 1, FAULTY)
    editor.tell(editor.client.text_document_did_open, types.DidOpenTextDocumentParams(item))
    editor.open("last.py", "")
    assert "git:/old/train.py" not in editor.published


class TestNotebooks:
    MODEL, LOOP, END = (FAULTY.index(word) for word in ("model", "for step", "    losses.app"))
    CELLS = (
        "%matplotlib inline\nimport torch\nfrom torch import nn\n",
        f"!pip install x\n{FAULTY[MODEL:LOOP]}",
        FAULTY[LOOP:END],
    )

    @pytest.fixture
    def cells(self, editor: Editor) -> Iterator[list[str]]:
        """The URIs of an open notebook's cells."""
        uris = [f"vscode-notebook-cell:{editor.folder}/nb.ipynb#C{k}" for k in range(3)]
        notebook = types.NotebookDocument(
            editor.uri("nb.ipynb"),
            "jupyter-notebook",
            1,
            [types.NotebookCell(types.NotebookCellKind.Code, uri) for uri in uris],
        )
        items = [
            types.TextDocumentItem(uri, "python", 1, text)
            for uri, text in zip(uris, self.CELLS, strict=True)
        ]
        editor.published.clear()
        editor.tell(
            editor.client.notebook_document_did_open,
            types.DidOpenNotebookDocumentParams(notebook, items),
        )
        editor.wait(lambda: all(uri in editor.published for uri in uris))
        yield uris
        editor.tell(
            editor.client.notebook_document_did_close,
            types.DidCloseNotebookDocumentParams(
                types.NotebookDocumentIdentifier(editor.uri("nb.ipynb")),
                [types.TextDocumentIdentifier(uri) for uri in uris],
            ),
        )

    def test_findings_are_in_their_cells(self, editor: Editor, cells: list[str]) -> None:
        path = editor.folder / "nb.ipynb"
        source = [{"cell_type": "code", "source": text} for text in self.CELLS]
        path.write_text(json.dumps({"cells": source}))
        found = json.loads(as_json(check([str(path)], Configs()), None))["findings"]
        assert [
            (each.code, number, each.range.start.line + 1, each.range.start.character + 1)
            for number, uri in enumerate(cells, 1)
            for each in editor.latest(uri)
        ] == [(each["code"], each["cell"], each["line"], each["column"]) for each in found]
        assert len(found) == 1
        related = editor.latest(cells[2])[0].related_information or ()
        assert [each.location.uri for each in related] == [cells[2], cells[2]]

    def test_changed_cells_are_checked(self, editor: Editor, cells: list[str]) -> None:
        (ignore,) = editor.actions("", 3, uri=cells[2])
        assert applied(self.CELLS[2], ignore) == self.CELLS[2].replace(
            "zero_grad()", "zero_grad()  # trueloop: ignore[TL101]"
        )
        at = types.Range(types.Position(3, 0), types.Position(4, 0))
        change = types.NotebookDocumentCellContentChanges(
            types.VersionedTextDocumentIdentifier(2, cells[2]),
            [types.TextDocumentContentChangePartial(range=at, text="")],
        )
        self.change(editor, 2, types.NotebookDocumentCellChanges(text_content=[change]))
        editor.wait(lambda: codes(editor.latest(cells[2])) == ["TL102"])

    def test_a_cell_can_take_the_place_of_one(self, editor: Editor, cells: list[str]) -> None:
        uri = cells[2].replace("C2", "C3")
        structure = types.NotebookDocumentCellChangeStructure(
            types.NotebookCellArrayChange(
                2, 1, [types.NotebookCell(types.NotebookCellKind.Code, uri)]
            ),
            [types.TextDocumentItem(uri, "python", 1, f"# again\n{self.CELLS[2]}")],
            [types.TextDocumentIdentifier(cells[2])],
        )
        self.change(editor, 2, types.NotebookDocumentCellChanges(structure=structure))
        editor.wait(lambda: codes(editor.latest(uri)) == ["TL101"])
        assert editor.latest(uri)[0].range.start.line == 4
        editor.wait(lambda: codes(editor.latest(cells[2])) == [])

    def change(
        self, editor: Editor, version: int, cells: types.NotebookDocumentCellChanges
    ) -> None:
        notebook = types.VersionedNotebookDocumentIdentifier(version, editor.uri("nb.ipynb"))
        editor.tell(
            editor.client.notebook_document_did_change,
            types.DidChangeNotebookDocumentParams(
                notebook, types.NotebookDocumentChangeEvent(cells=cells)
            ),
        )
