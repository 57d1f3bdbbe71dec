"""Findings as diagnostics of the protocol."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from trueloop.doctor.language_server.open_files import Findings
from trueloop.doctor.language_server.positions import Places
from trueloop.doctor.model.findings import Finding, Location
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.rules.pages import file_of

SOURCE = "trueloop"
SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "advice": types.DiagnosticSeverity.Information,
}


def all_diagnostics(found: Findings, places: Places) -> dict[str, list[types.Diagnostic]]:
    """By document; also of documents that have none."""
    by_uri: dict[str, list[types.Diagnostic]] = {
        uri: [] for file in found.files.values() for uri in (file.cells or (file.uri,))
    }
    for findings in found.by_path.values():
        for finding in findings:
            uri = places.uri(finding.place.path, finding.place.line)
            by_uri.setdefault(uri, []).append(diagnostic(finding, places))
    for uri, remark in _remarks(found, places):
        by_uri.setdefault(uri, []).append(remark)
    return by_uri


def diagnostic(finding: Finding, places: Places) -> types.Diagnostic:
    """One finding, with its other lines."""
    return types.Diagnostic(
        range=places.location(finding.place).range,
        message=finding.message + (f"\n{finding.fix}" if finding.fix else ""),
        severity=SEVERITIES[finding.severity],
        code=finding.code,
        code_description=types.CodeDescription(file_of(BY_CODE[finding.code]).as_uri()),
        source=SOURCE,
        related_information=[
            types.DiagnosticRelatedInformation(places.location(where), label)
            for where, label in finding.related
        ],
        tags=[types.DiagnosticTag.Unnecessary] if finding.code == "TL001" else None,
    )


def _remarks(found: Findings, places: Places) -> Iterator[tuple[str, types.Diagnostic]]:
    """The parts of files that could not be read."""
    for path, remarks in found.remarks.items():
        for line, reason in remarks:
            where = places.location(Location(path, max(line, 1)))
            yield (
                where.uri,
                types.Diagnostic(
                    range=where.range,
                    message=f"This file {reason}",
                    severity=types.DiagnosticSeverity.Information,
                    source=SOURCE,
                ),
            )
