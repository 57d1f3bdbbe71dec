"""For code hosts and editors: SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format")."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

from trueloop import __version__
from trueloop.doctor.model.findings import Finding, Location
from trueloop.doctor.report.locations import spot_of, uri
from trueloop.doctor.rules.catalogue import ENTRIES, Entry
from trueloop.doctor.rules.pages import Page, group_of, page_of
from trueloop.doctor.static.checking import CheckResult
from trueloop.doctor.static.inputs.discovery import FileProblem, Unread

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "advice": "note"}


def as_sarif(outcome: CheckResult) -> str:
    """One run of one tool, with all its rules."""
    entries = [entry for entry in ENTRIES if "S" in entry.seen]
    seen: Counter[str] = Counter()
    run = {
        "tool": {
            "driver": {
                "name": "trueloop",
                "semanticVersion": __version__,
                "rules": [_rule(entry, page_of(entry)) for entry in entries],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    *(_notification(problem, "error") for problem in outcome.problems),
                    *(_notification(unread, "warning") for unread in outcome.unread),
                ],
            }
        ],
        "results": [_result(outcome, finding, entries, seen) for finding in outcome.findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(entry: Entry, page: Page) -> dict[str, Any]:
    return {
        "id": entry.code,
        "name": "".join(word.capitalize() for word in entry.name.split("-")),
        "shortDescription": {"text": page.summary},
        "fullDescription": {"text": page.sections.get("What it does") or page.summary},
        "help": {"text": page.text, "markdown": page.text},
        "defaultConfiguration": {"level": _LEVELS[entry.severity]},
        "properties": {"tags": ["pytorch", group_of(entry.code)]},
    }


def _result(
    outcome: CheckResult, finding: Finding, entries: list[Entry], seen: Counter[str]
) -> dict[str, Any]:
    text = finding.message + (f"\n{finding.fix}" if finding.fix else "")
    spot = spot_of(outcome, finding.place)
    if spot.cell:
        text = f"Cell {spot.cell}, line {spot.line}: {text}"
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": [entry.code for entry in entries].index(finding.code),
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": _location(finding.place)}],
        "partialFingerprints": {"primaryLocationLineHash": _fingerprint(outcome, finding, seen)},
    }
    if finding.related:
        result["relatedLocations"] = [
            {"id": number, "physicalLocation": _location(at), "message": {"text": label}}
            for number, (at, label) in enumerate(finding.related, 1)
        ]
    return result


def _location(place: Location) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": uri(place.path)}}
    if not place.path.endswith(".ipynb"):  # a line of a cell is not a line of the file
        region = {"startLine": place.line, "startColumn": place.column}
        if place.end_line:
            region |= {"endLine": place.end_line, "endColumn": place.end_column}
        location["region"] = region
    return location


def _notification(problem: FileProblem | Unread, level: str) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": uri(problem.path)}}
    if problem.line and not problem.path.endswith(".ipynb"):
        location["region"] = {"startLine": problem.line}
    return {
        "level": level,
        "message": {"text": problem.message},
        "locations": [{"physicalLocation": location}],
    }


def _fingerprint(outcome: CheckResult, finding: Finding, seen: Counter[str]) -> str:
    """The same for the same fault after the lines around it have moved: of its rule, its file and
    its own line, counted where several are alike."""
    place = finding.place
    lines = outcome.documents[place.path].lines
    line = lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""
    parts = "\0".join((finding.code, uri(place.path), line))
    found = hashlib.sha256(parts.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    seen[found] += 1
    return f"{found}:{seen[found]}"
