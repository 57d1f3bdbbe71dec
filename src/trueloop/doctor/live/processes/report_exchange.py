"""The findings of several processes: sent as text, and merged into one report."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from trueloop.doctor.live.session import AsRun, Watched
from trueloop.doctor.live.timing.step_timing import Speed
from trueloop.doctor.model.findings import Finding, Location, Related
from trueloop.doctor.static.inputs.discovery import FileProblem

if TYPE_CHECKING:
    from trueloop.doctor.live.memory.out_of_memory import Exhausted

_OF_ALL = frozenset({"TL904"})
"""Rules that compare ranks: what one of them finds is about all."""
_Key = tuple[object, ...]


@dataclass
class ProcessReport:
    """One process, and what was found in it."""

    name: str
    """The program's name of the process: `Process-2`."""
    rank: int | None
    """Its number in the process group; None outside of any."""
    ended: bool
    """This is all of it; False: so far, and the process went on."""
    watched: Watched

    @property
    def label(self) -> str:
        """`rank 1`, or the name of the process."""
        return self.name if self.rank is None else f"rank {self.rank}"

    @property
    def trains(self) -> bool:
        return self.watched.updates > 0


# ---------------------------------------------------------------------- as text


def as_text(part: ProcessReport) -> str:
    """One line of JSON, which `read` takes."""
    watched = part.watched
    return json.dumps(
        {
            "name": part.name,
            "rank": part.rank,
            "ended": part.ended,
            "findings": [_finding_object(each) for each in watched.findings],
            "shown": watched.shown,
            "problems": [list(each) for each in watched.problems],
            "errors": watched.errors,
            "updates": watched.updates,
            "compiled_updates": watched.compiled_updates,
            "optimizers": watched.optimizers,
            "processes": watched.processes,
            "without_report": watched.without_report,
            "begun": watched.begun,
            "stopped": watched.stopped,
            "speed": None if watched.speed is None else asdict(watched.speed),
            "memory": None if watched.memory is None else asdict(watched.memory),
        }
    )


def finding_text(finding: Finding) -> str:
    """One line of JSON, which `read_finding` takes."""
    return json.dumps(_finding_object(finding))


def read_finding(text: str) -> Finding:
    """The finding that `finding_text` wrote."""
    return _finding(json.loads(text))


def _finding_object(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "place": list(finding.place),
        "message": finding.message,
        "fix": finding.fix,
        "related": [[list(each.place), each.label] for each in finding.related],
        "count": finding.count,
        "seen_in": finding.seen_in,
    }


def read(text: str) -> ProcessReport:
    """The part that `as_text` wrote."""
    entries = json.loads(text)
    watched = Watched([], [], 0, shown=entries["shown"], documents=AsRun())
    watched.findings = [_finding(each) for each in entries["findings"]]
    watched.problems = [FileProblem(*each) for each in entries["problems"]]
    watched.errors = entries["errors"]
    watched.updates, watched.optimizers = entries["updates"], entries["optimizers"]
    watched.compiled_updates = entries["compiled_updates"]
    watched.begun, watched.stopped = entries["begun"], entries["stopped"]
    watched.processes, watched.without_report = entries["processes"], entries["without_report"]
    watched.speed = None if entries["speed"] is None else Speed(**entries["speed"])
    watched.memory = None if entries["memory"] is None else _memory(entries["memory"])
    return ProcessReport(entries["name"], entries["rank"], entries["ended"], watched)


def _finding(entries: dict[str, Any]) -> Finding:
    related = tuple(Related(Location(*place), label) for place, label in entries["related"])
    return Finding(**{**entries, "place": Location(*entries["place"]), "related": related})


def _memory(entries: dict[str, Any]) -> Exhausted:
    # Imported late: they import torch.
    from trueloop.doctor.live.memory.options import MemoryOption
    from trueloop.doctor.live.memory.out_of_memory import Exhausted

    return Exhausted(
        **{
            **entries,
            "place": Location(*entries["place"]),
            "modules": [tuple(each) for each in entries["modules"]],
            "optimizers": tuple(entries["optimizers"]),
            "fits": [MemoryOption(**each) for each in entries["fits"]],
        }
    )


# ---------------------------------------------------------------------- as one report


def together(own: ProcessReport, others: Iterable[ProcessReport]) -> Watched:
    """One report of several processes, the first of which is this one. A fault that several of
    them have is reported once, and says where it was seen if others that train do not have it."""
    others = sorted(others, key=lambda part: (part.rank is None, part.rank or 0, part.name))
    entries = own.watched
    parts = [own, *others]
    if not others:
        return entries
    training = [part for part in parts if part.trains]
    found = _by_place(parts)
    entries.findings = [_one(where, training) for where in found.values()]
    entries.timed_updates = next((p.watched.updates for p in parts if p.watched.speed), 0)
    entries.processes = sum(part.watched.processes for part in training)
    entries.of_ranks = all(part.rank is not None for part in training)
    entries.without_report = [label for part in parts for label in part.watched.without_report]
    entries.without_report += [part.label for part in others if part.trains and not part.ended]
    watched = [part.watched for part in parts]
    entries.updates = sum(each.updates for each in watched)
    entries.compiled_updates = sum(each.compiled_updates for each in watched)
    entries.optimizers = sum(each.optimizers for each in watched)
    entries.begun = any(each.begun for each in watched)
    entries.stopped = any(each.stopped for each in watched)
    entries.speed = next((each.speed for each in watched if each.speed is not None), None)
    entries.memory = next((each.memory for each in watched if each.memory is not None), None)
    entries.errors = list(dict.fromkeys(error for each in watched for error in each.errors))
    entries.problems = list(dict.fromkeys(problem for each in watched for problem in each.problems))
    for each in watched:
        entries.shown.update(each.shown)
    entries.findings.sort(key=lambda each: (entries.name(each.place.path), *each.place[1:3]))
    entries.files = len({finding.place.path for finding in entries.findings})
    return entries


def _by_place(parts: list[ProcessReport]) -> dict[_Key, list[tuple[ProcessReport, Finding]]]:
    found: dict[_Key, list[tuple[ProcessReport, Finding]]] = {}
    for part in parts:
        for finding in part.watched.findings:
            key = (finding.code, *finding.place[:3])
            found.setdefault(key, []).append((part, finding))
    return found


def _one(where: list[tuple[ProcessReport, Finding]], training: list[ProcessReport]) -> Finding:
    """One finding in place of the same of several processes."""
    finding = where[0][1]
    labels = [part.label for part, _ in where]
    count = sum(each.count for _, each in where)
    elsewhere = [part for part in training if part.label not in labels]
    if not elsewhere or finding.code in _OF_ALL:
        return replace(finding, count=count)
    return seen_in(replace(finding, count=count), labels)


def seen_in(finding: Finding, labels: list[str]) -> Finding:
    """The finding of some processes among others, which have these labels."""
    return replace(finding, seen_in="" if finding.code in _OF_ALL else _listed(labels))


def _listed(labels: list[str]) -> str:
    """`rank 1`, `ranks 1 and 3`, `Process-1 and Process-2`."""
    labels = list(dict.fromkeys(labels))
    if len(labels) > 1 and all(label.startswith("rank ") for label in labels):
        labels = ["ranks " + labels[0][5:], *(label[5:] for label in labels[1:])]
    return labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} and {labels[-1]}"
