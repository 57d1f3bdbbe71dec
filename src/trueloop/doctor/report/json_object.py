"""For programs: one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from trueloop.doctor.model.findings import Finding
from trueloop.doctor.report.locations import spot_of
from trueloop.doctor.static.checking import CheckResult


def as_json(outcome: CheckResult, fixed: Iterable[Finding] | None = None) -> str:
    """`{"findings": […], "files": …, "problems": […], "unread": […]}`; with `fixed`, what `--fix`
    fixed."""
    entry: dict[str, Any] = {
        "findings": [finding_object(outcome, finding) for finding in outcome.findings],
        "files": outcome.files,
        "problems": [
            {
                "path": outcome.name(problem.path),
                "line": outcome.documents[problem.path].cell(problem.line)[1] or None,
                "message": problem.message,
            }
            for problem in outcome.problems
        ],
        "unread": [
            {
                "path": outcome.name(unread.path),
                "line": outcome.documents[unread.path].cell(unread.line)[1] or None,
                "function": unread.function or None,
                "message": unread.message,
            }
            for unread in outcome.unread
        ],
    }
    if fixed is not None:
        entry["fixed"] = [finding_object(outcome, finding) for finding in fixed]
    return json.dumps(entry, indent=2)


def finding_object(outcome: CheckResult, finding: Finding) -> dict[str, Any]:
    """One finding. In a notebook, the line is counted in its cell, and the cell's number is given;
    of several processes, those with the finding are listed, if not all have it."""
    spot = spot_of(outcome, finding.place)
    entry: dict[str, Any] = {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "path": spot.name,
        "line": spot.line,
        "column": spot.column,
        "message": finding.message,
        "fix": finding.fix,
        "count": finding.count,
    }
    if finding.seen_in:
        entry["seen_in"] = finding.seen_in
    return {**entry, "cell": spot.cell} if spot.cell else entry
