"""One file after the other, or several at a time, each within its bounds."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from trueloop.doctor import static
from trueloop.doctor.model.findings import Finding, Location, Related
from trueloop.doctor.static.inputs import garbage
from trueloop.doctor.static.inputs.cache import Cache, Examined, digest_of_file
from trueloop.doctor.static.inputs.columns import relocated
from trueloop.doctor.static.inputs.discovery import FileProblem
from trueloop.doctor.static.inputs.documents import (
    Program,
    UnreadableError,
    digest,
    is_python,
    read_bytes,
)
from trueloop.doctor.static.inputs.ignores import may_have_ignores
from trueloop.doctor.static.inputs.open_document import open_document
from trueloop.doctor.static.inputs.skipped import Gaps
from trueloop.doctor.static.interpreter.project import project_at
from trueloop.doctor.static.interpreter.step_budget import STEPS_A_FILE

FEW = 12
"""Files that are not worth the start of other processes."""


def examine(path: str) -> Examined:
    """The findings of the file at the absolute `path`. Raises nothing: what goes wrong with a file
    is a problem of that file."""
    try:
        data = read_bytes(path)
    except UnreadableError as error:
        return Examined(path, problems=(FileProblem(path, error.line, error.message),))
    document = open_document(path, data)
    findings: dict[tuple[object, ...], Finding] = {}
    problems = list(document.problems)
    followed: dict[str, str] = {}
    settled: set[tuple[str, str, int]] = set()
    gaps, left = Gaps(), STEPS_A_FILE
    for program in document.programs:
        if left <= 0:
            gaps.blocks.append(program.above + 1)
            continue
        try:
            report = check_program(program, path, left)
        except Exception as error:
            problems.append(_problem(path, error))
            continue
        left -= report.steps
        followed |= report.followed
        settled |= report.settled
        gaps.add(report.gaps)
        for finding in report.findings:
            findings.setdefault((finding.code, *finding.place[:3]), finding)
    return Examined(
        path,
        digest(data),
        tuple(findings.values()),
        tuple(problems),
        tuple((other, followed[other]) for other in sorted(followed.keys() - {path})),
        may_have_ignores(document),
        gaps.unread_file(path),
        tuple(sorted(settled)),
    )


def check_program(program: Program, path: str, steps: int = STEPS_A_FILE) -> static.Report:
    """The findings of a program of the document at the absolute `path`, in the document's own
    places. Raises `SyntaxError`, `RecursionError`, …"""
    report = static.check_text(program.text, path, above=program.above, steps=steps)
    place = _placing(path, program.indent)
    report.findings = [
        replace(
            finding,
            place=place(finding.place),
            related=tuple(Related(place(each.place), each.label) for each in finding.related),
            # An edit is made where the program is the whole file, not a part of a document.
            remedies=tuple(
                relocated(remedy, place) for remedy in finding.remedies if is_python(path)
            ),
        )
        for finding in report.findings
    ]
    report.settled = {(code, os.path.abspath(other), line) for code, other, line in report.settled}
    report.followed = {
        each if os.path.isabs(each) else os.path.abspath(each): known
        for each, known in report.followed.items()
    }
    return report


def _placing(path: str, indent: int) -> Callable[[Location], Location]:
    """Makes a place's path absolute, and moves a place in the current program to its place in the
    document."""

    def place(at: Location) -> Location:
        absolute = os.path.abspath(at.path)
        if absolute != path or not indent:
            return at._replace(path=absolute)
        end = at.end_column + indent if at.end_column else 0
        return at._replace(path=absolute, column=at.column + indent, end_column=end)

    return place


def _problem(path: str, error: Exception) -> FileProblem:
    """The reason why a program could not be checked, in a few words."""
    if isinstance(error, SyntaxError):
        python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        why = " ".join(str(error.msg).split())
        return FileProblem(path, error.lineno or 0, f"does not parse as {python} ({why})")
    if isinstance(error, (RecursionError, MemoryError)):
        return FileProblem(path, 0, "is nested too deeply, or is too long in one line, to be read")
    frame = traceback.extract_tb(error.__traceback__)[-1]
    what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return FileProblem(
        path,
        0,
        f"was not checked, by a fault of trueloop's own: please report it with the file "
        f"({what}, {os.path.basename(frame.filename)}:{frame.lineno})",
    )


def examine_all(
    paths: Iterable[str], *, jobs: int | None = None, cache: Cache | None = None
) -> list[Examined]:
    """The findings of each of the files, in their order.

    `jobs` processes work side by side, None for one on each processor; a few files, and those that
    `cache` knows, need none.
    """
    results: dict[str, Examined] = {}
    order = list(paths)
    for path in order:
        known = cache.get(path, digest_of_file(path)) if cache is not None else None
        if known is not None:
            results[path] = known
    missing = [path for path in order if path not in results]
    count = min(jobs or processors(), len(missing))
    if missing:
        forget_projects()
    several = count > 1 and (jobs is not None or len(missing) > FEW)
    for found in _side_by_side(missing, count) if several else _in_turn(missing):
        results[found.path] = found
        if cache is not None:
            cache.put(found)
    return [results[path] for path in order]


def _in_turn(paths: Iterable[str]) -> Iterator[Examined]:
    with garbage.between_files():
        for path in paths:
            yield examine(path)
            garbage.collect()


def forget_projects() -> None:
    """Files may have changed since this process read them for others that import them."""
    project_at.cache_clear()


def processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _side_by_side(paths: list[str], jobs: int) -> Iterator[Examined]:
    """A process that dies takes only its share with it; those files are then tried one by one."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    # Where it is safe: a process made by copying this one is there at once.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    size = max(1, min(16, len(paths) // (4 * jobs)))
    shares = [paths[start : start + size] for start in range(0, len(paths), size)]
    shares.sort(key=_bytes_in, reverse=True)  # nobody waits in the end for one long file
    done: set[str] = set()
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_end_quietly) as pool:
        waiting = [pool.submit(_examine_share, share) for share in shares]
        try:
            for future in as_completed(waiting):
                for found in future.result():
                    done.add(found.path)
                    yield found
        except BrokenProcessPool:
            pass  # who broke it is found out below
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for path in paths:
        if path not in done:
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                try:
                    yield pool.submit(examine, path).result()
                except BrokenProcessPool:
                    yield Examined(
                        path, problems=(FileProblem(path, 0, "ends the process that reads it"),)
                    )


def _bytes_in(paths: list[str]) -> int:
    return sum(os.path.getsize(path) for path in paths if os.path.exists(path))


def _examine_share(paths: list[str]) -> list[Examined]:
    return list(_in_turn(paths))


def _end_quietly() -> None:
    """Ctrl-C reaches every process of the terminal, and only the first one reports it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
