"""`check`: from paths to findings, in the order of printing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from trueloop.doctor.config import Configs
from trueloop.doctor.model.findings import GRAVITY, SAME_HERE, Finding, Related
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.rules.comments.tl001_unused_ignore import UnusedIgnore
from trueloop.doctor.static.inputs.cache import Cache, Examined
from trueloop.doctor.static.inputs.discovery import FileProblem, Unread, find_files
from trueloop.doctor.static.inputs.examine import examine_all
from trueloop.doctor.static.inputs.ignores import complaints, hold_back, ignores_in
from trueloop.doctor.static.inputs.open_document import Documents
from trueloop.doctor.static.inputs.unused_code import UnusedCode


@dataclass
class CheckResult:
    """The report about the files that were checked."""

    findings: list[Finding]
    """By place; paths are absolute."""
    problems: list[FileProblem]
    """Files and parts of files that could not be checked."""
    files: int
    shown: dict[str, str] = field(default_factory=dict)
    """The names of the files that were checked, by absolute path."""
    documents: Documents = field(default_factory=Documents)
    unread: list[Unread] = field(default_factory=list)
    """Files that were not read to their end."""

    def name(self, path: str) -> str:
        """The name of a file: as it was given, or from the working directory."""
        if path in self.shown:
            return self.shown[path]
        relative = os.path.relpath(path)
        return path if relative.startswith("..") else relative


def check(
    paths: Sequence[str],
    configs: Configs,
    *,
    force_exclude: bool = False,
    jobs: int | None = None,
    cache: Cache | None = None,
) -> CheckResult:
    """Check the files at and below `paths`. Raises `ConfigError` for a path or a configuration that
    cannot be."""
    wanted = find_files(paths, is_excluded=configs.excludes, force_exclude=force_exclude)
    examined = examine_all(wanted.shown, jobs=jobs, cache=cache)
    outcome = CheckResult([], list(wanted.problems), len(wanted.shown), wanted.shown)
    unused = UnusedCode([each for each in paths if os.path.isdir(each)])
    outcome.findings = selected_findings(examined, configs, outcome.documents, unused)
    outcome.problems += [problem for each in examined for problem in each.problems]
    outcome.unread = [each.unread for each in examined if each.unread is not None]
    outcome.unread.sort(key=lambda unread: outcome.name(unread.path))
    outcome.findings.sort(key=lambda found: (outcome.name(found.place.path), *found.place[1:3]))
    outcome.problems.sort(key=lambda problem: (outcome.name(problem.path), problem.line))
    return outcome


def selected_findings(
    examined: Sequence[Examined],
    configs: Configs,
    documents: Documents,
    unused: UnusedCode,
) -> list[Finding]:
    """The findings that are selected and that no comment suppresses; and TL001 about comments.

    A file that several others use is read with each of them: its findings are reported once. A
    finding in a function that was read without its callers does not count where a program that
    calls it shows that nothing is wrong; in a class or a file that nothing uses it is advice.
    """
    settled = {place for each in examined for place in each.settled}
    called = {_key(one) for each in examined for one in each.findings if not one.without_callers}
    checked = {each.path: each for each in examined}
    by_file: dict[str, dict[tuple[object, ...], Finding]] = {path: {} for path in checked}
    for each in examined:
        for finding in each.findings:
            if finding.without_callers and (finding.code, *finding.place[:2]) in settled:
                continue
            key = _key(finding)
            known = by_file.setdefault(finding.place.path, {})
            # Another program may show what a file alone does not: that it hurts somebody.
            if key not in known or GRAVITY[finding.severity] > GRAVITY[known[key].severity]:
                known[key] = finding
    found: list[Finding] = []
    for path, findings in by_file.items():
        own = checked.get(path)
        if own is None and configs.excludes(path):
            continue
        config = configs.of(path)
        asked = [each for each in findings.values() if config.wants(each.code, path)]
        asked = [each if _key(each) in called else _weighed(each, unused) for each in asked]
        if own is None or own.ignores:
            ignores = ignores_in(documents[path])
            asked = hold_back(asked, ignores)
            if own is not None and not own.problems and config.wants(UnusedIgnore.code, path):
                asked += complaints(ignores, config, path)
        found += once_a_function(asked)
    return found


def _key(finding: Finding) -> tuple[object, ...]:
    return finding.code, *finding.place[:3]


def _weighed(finding: Finding, unused: UnusedCode) -> Finding:
    """As advice if it is in a class or a file that nothing uses."""
    if finding.severity == "advice":
        return finding
    name = unused.name_of(finding.place.path, finding.place.function)
    if not name:
        return finding
    message = f"{finding.message} (Nothing else in this project uses `{name}`.)"
    return replace(finding, severity="advice", message=message)


def once_a_function(findings: Sequence[Finding]) -> list[Finding]:
    """One finding, with its count, for the lines of a function with one cause."""
    kept: list[Finding] = []
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in sorted(findings, key=lambda each: each.place):
        if BY_CODE[finding.code].once_a_function:
            key = (finding.code, finding.severity, finding.place.function)
            groups.setdefault(key, []).append(finding)
        else:
            kept.append(finding)
    for first, *more in groups.values():
        others = tuple(Related(each.place, SAME_HERE) for each in more)
        kept.append(
            replace(
                first,
                count=1 + len(more),
                related=first.related + others,
                remedies=tuple(edit for each in (first, *more) for edit in each.remedies),
            )
        )
    return kept
