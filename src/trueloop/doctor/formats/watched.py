"""What was seen of a program that ran: for people, and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from trueloop.doctor.formats.json_object import finding_object
from trueloop.doctor.formats.text import Paint, counted, finding_text, printable, severities

if TYPE_CHECKING:
    from trueloop.doctor.runtime.session import Watched

FORMATS = ("text", "json")


def as_text(watched: Watched, paint: Paint) -> str:
    """All findings, what went wrong in the watching itself, and a last line that counts."""
    lines = [finding_text(watched, finding, paint) for finding in watched.findings]
    lines += [
        printable(f"trueloop: {watched.name(problem.path)}: {problem.message}")
        for problem in watched.problems
    ]
    lines += [
        printable(
            f"trueloop: a fault of trueloop's own, which may have missed something: please report "
            f"it ({error})"
        )
        for error in watched.errors
    ]
    return "\n".join([*lines, closing_line(watched, paint)])


def closing_line(watched: Watched, paint: Paint) -> str:
    """How much was watched, and how many findings of each severity there are."""
    if not watched.begun:
        why = "see above" if watched.errors else "torch was not imported"
        return f"trueloop: nothing was watched: {why}"
    return f"trueloop: {_seen(watched)}; {severities(watched, paint)}"


def _seen(watched: Watched) -> str:
    if watched.stopped:
        return f"stopped at the first error, in update {watched.updates + 1:,}"
    if not watched.updates:
        return "no optimizer took a step in this process, and its child processes are not watched"
    only = "the first " if watched.first is not None and watched.updates >= watched.first else ""
    updates = counted(watched.updates, "update")
    return f"watched {only}{updates} of {counted(watched.optimizers, 'optimizer')}"


def as_json(watched: Watched) -> str:
    """`{"findings": […], "updates": …, "optimizers": …, "stopped": …, "problems": […]}`."""
    told = {
        "findings": [finding_object(watched, finding) for finding in watched.findings],
        "updates": watched.updates,
        "optimizers": watched.optimizers,
        "stopped": watched.stopped,
        "problems": [
            *(f"{watched.name(problem.path)}: {problem.message}" for problem in watched.problems),
            *watched.errors,
        ],
    }
    return json.dumps(told, indent=2)
