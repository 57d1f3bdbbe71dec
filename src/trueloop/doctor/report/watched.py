"""The report on a watched program, for people and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from trueloop.doctor.report import timing_table
from trueloop.doctor.report.json_object import finding_object
from trueloop.doctor.report.memory_table import memory_object, memory_text
from trueloop.doctor.report.terminal import Paint, counted, finding_text, printable, severities

if TYPE_CHECKING:
    from trueloop.doctor.live.session import Watched

FORMATS = ("text", "json")


def as_text(watched: Watched, paint: Paint) -> str:
    """All findings, failures of the watcher, and a last line with counts."""
    lines = [finding_text(watched, finding, paint) for finding in watched.findings]
    lines += [
        printable(f"trueloop: {watched.name(problem.path)}: {problem.message}")
        for problem in watched.problems
    ]
    lines += [
        printable(
            f"trueloop: internal error, a fault may have been missed: please report it ({error})"
        )
        for error in watched.errors
    ]
    lines += [
        f"trueloop: {label} did not report at its end (killed, or still running): only its "
        f"earlier findings are shown"
        for label in watched.without_report
    ]
    if watched.compiled_updates:
        lines.append(
            f"trueloop: {counted(watched.compiled_updates, 'update')} of compile='step' ran as "
            "compiled graphs, which cannot be watched: only the other "
            f"{watched.updates - watched.compiled_updates:,} were checked"
        )
    lines += _speed(watched, paint)
    if watched.memory is not None:
        lines.append(memory_text(watched, watched.memory, paint))
    return "\n".join([*lines, closing_line(watched, paint)])


def shows_speed(watched: Watched) -> bool:
    """There is a table of where the time goes: it is asked for, or of a training that lasts."""
    found = watched.speed
    return found is not None and (watched.asks_speed or timing_table.is_worth_showing(found))


def _speed(watched: Watched, paint: Paint) -> list[str]:
    if watched.speed is not None and shows_speed(watched):
        updates = watched.timed_updates or watched.updates
        return [timing_table.as_table(watched.speed, updates, paint)]
    if watched.asks_speed and watched.begun:
        return ["trueloop: no update was timed: train for 60 updates or more"]
    return []


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
        return "no optimizer stepped, in this process or in one started with multiprocessing"
    only = "the first " if watched.first is not None and watched.updates >= watched.first else ""
    updates = counted(watched.updates, "update")
    seen = f"watched {only}{updates} of {counted(watched.optimizers, 'optimizer')}"
    if watched.processes < 2:
        return seen
    where = "on {:,} ranks" if watched.of_ranks else "in {:,} processes"
    return f"{seen} {where.format(watched.processes)}"


def as_json(watched: Watched) -> str:
    """`{"findings": […], "updates": …, "compiled_updates": …, "optimizers": …, "processes": …,
    "without_report": […], "stopped": …, "speed": …, "memory": …, "problems": […]}`;
    `compiled_updates` are updates inside compiled graphs, `speed` is null where no update was
    timed, `memory` unless it ran out."""
    report = {
        "findings": [finding_object(watched, finding) for finding in watched.findings],
        "updates": watched.updates,
        "compiled_updates": watched.compiled_updates,
        "optimizers": watched.optimizers,
        "processes": watched.processes,
        "without_report": watched.without_report,
        "stopped": watched.stopped,
        "speed": timing_table.as_object(watched.speed),
        "memory": None if watched.memory is None else memory_object(watched, watched.memory),
        "problems": [
            *(f"{watched.name(problem.path)}: {problem.message}" for problem in watched.problems),
            *watched.errors,
        ],
    }
    return json.dumps(report, indent=2)
