"""Code actions: the edits of `trueloop check --fix`, and comments that suppress a finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lsprotocol import types

from trueloop.doctor.language_server.diagnostics import SOURCE
from trueloop.doctor.language_server.open_files import OpenFile
from trueloop.doctor.language_server.positions import Places, edits_between
from trueloop.doctor.model.findings import Finding
from trueloop.doctor.static.fixes.ignore_comment import ignore_comment

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.{SOURCE}"
KINDS = (types.CodeActionKind.QuickFix, FIX_ALL)


@dataclass(frozen=True)
class Wanted:
    """A request for code actions."""

    uri: str
    range: types.Range
    diagnostics: Sequence[types.Diagnostic] = ()
    only: Sequence[str] | None = None
    versioned: bool = False
    """The editor knows edits of a version of a document."""

    def wants(self, kind: str) -> bool:
        """An action of a kind; of one that is asked for, also those below it."""
        return self.only is None or any(
            kind == each or kind.startswith(f"{each}.") for each in self.only
        )


def code_actions(
    wanted: Wanted,
    file: OpenFile,
    findings: Sequence[Finding],
    places: Places,
    fixed: Callable[[Finding | None], str],
) -> list[types.CodeAction]:
    """The fixes and the ignore comments for the findings of one file in a range of it.

    `fixed` gives the text with the fix of one finding, or of all.
    """
    found: list[types.CodeAction] = []
    here = [each for each in findings if _is_touched(places.location(each.place), wanted)]
    if wanted.wants(types.CodeActionKind.QuickFix.value):
        for finding in here:
            if finding.remedies:
                found += _fix(wanted, file, finding, places, fixed)
        for code in dict.fromkeys(finding.code for finding in here):
            found += _ignore(wanted, file, here, code, places)
    if wanted.wants(FIX_ALL) and any(each.remedies for each in findings):
        edits = list(edits_between(file.text, fixed(None), places.codec))
        if edits:
            found.append(
                types.CodeAction(
                    title="Trueloop: fix all that has one safe fix",
                    kind=FIX_ALL,
                    edit=_workspace_edit(wanted, file, edits),
                )
            )
    return found


def _is_touched(at: types.Location, wanted: Wanted) -> bool:
    """The range that is asked about begins or ends on the line of a finding, or surrounds it."""
    lines = wanted.range.start.line, wanted.range.end.line
    return at.uri == wanted.uri and lines[0] <= at.range.start.line <= lines[1]


def _fix(
    wanted: Wanted,
    file: OpenFile,
    finding: Finding,
    places: Places,
    fixed: Callable[[Finding | None], str],
) -> list[types.CodeAction]:
    edits = list(edits_between(file.text, fixed(finding), places.codec))
    if not edits:
        return []
    return [
        types.CodeAction(
            title=f"{finding.fix or finding.name} ({finding.code})",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=_of_client(wanted, {finding.code}),
            edit=_workspace_edit(wanted, file, edits),
            is_preferred=True,
        )
    ]


def _ignore(
    wanted: Wanted, file: OpenFile, here: Sequence[Finding], code: str, places: Places
) -> list[types.CodeAction]:
    line = next(finding.place.line for finding in here if finding.code == code)
    comment = ignore_comment(places.documents[file.path], line, code)
    if comment is None:
        return []
    at = places.position(file.path, comment.line, comment.column)
    return [
        types.CodeAction(
            title=f"Ignore {code} here",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=_of_client(wanted, {code}),
            edit=_workspace_edit(wanted, file, [types.TextEdit(types.Range(at, at), comment.text)]),
        )
    ]


def _of_client(wanted: Wanted, codes: set[str]) -> list[types.Diagnostic]:
    return [
        each for each in wanted.diagnostics if each.source == SOURCE and str(each.code) in codes
    ]


def _workspace_edit(
    wanted: Wanted, file: OpenFile, edits: Sequence[types.TextEdit]
) -> types.WorkspaceEdit:
    if not wanted.versioned or file.cells:
        return types.WorkspaceEdit(changes={wanted.uri: list(edits)})
    document = types.OptionalVersionedTextDocumentIdentifier(wanted.uri, file.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, list(edits))])
