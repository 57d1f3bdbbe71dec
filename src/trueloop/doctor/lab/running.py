"""Running the lab's programs, each in a separate process that has torch already."""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from trueloop.doctor.config import Configs
from trueloop.doctor.lab.claims import Claim
from trueloop.doctor.lab.verdicts import LabFindings, MeasuredClaim
from trueloop.doctor.model.findings import Finding
from trueloop.errors import TrueloopError

SEEDS = (0, 1, 2, 3, 4)
LONGEST = 120.0
"""Seconds after which a program is ended: none needs a tenth of it."""
SIDES = ("right", "wrong")


class LabError(TrueloopError, RuntimeError):
    """A program of the lab failed, so its claim has no verdict."""


@dataclass
class Ran:
    """How a program ended."""

    stdout: str = ""
    stderr: str = ""
    found: list[LabFindings] = field(default_factory=list)
    """By the doctor, where it watched."""
    failed: str = ""
    """The exception that it raised; empty if it came to its end."""


def measure(claims: list[Claim], report: Callable[[MeasuredClaim], None]) -> list[MeasuredClaim]:
    """Run every program of these claims under every seed, and the doctor over the wrong ones.

    `report` is called with each claim as soon as its verdict is known. Claims about time run after
    all others, one at a time. Raises `LabError` if a program fails.
    """
    prepared = context()
    measured: dict[str, MeasuredClaim] = {}
    beside = [claim for claim in claims if not claim.timed]
    alone = [claim for claim in claims if claim.timed]
    for group, jobs in ((beside, _cores()), (alone, 1)):
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for work in [_Work(pool, prepared, claim) for claim in group]:
                    measured[work.claim.name] = work.result()
                    report(measured[work.claim.name])
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return [measured[claim.name] for claim in claims]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Work:
    """All the runs of one claim, under way."""

    def __init__(self, pool: ThreadPoolExecutor, context: Any, claim: Claim) -> None:
        self.claim = claim
        self.runs: dict[tuple[str, int], Future[Ran]] = {
            (side, seed): pool.submit(run, context, claim.program(side), seed)
            for seed in SEEDS
            for side in SIDES
        }
        self.watched = pool.submit(run, context, claim.program("wrong"), SEEDS[0], watched=True)
        path = claim.convinces
        self.convincing = None if path is None else pool.submit(run, context, path, SEEDS[0])

    def result(self) -> MeasuredClaim:
        sides: dict[str, list[Any]] = {side: [] for side in SIDES}
        for (side, seed), future in self.runs.items():
            sides[side].append(_figures(future.result(), self.claim.program(side), seed))
        watched = self.watched.result()
        if watched.failed:
            raise LabError(_failure(watched, self.claim.program("wrong"), "watched"))
        convinced = ""
        if self.convincing is not None and self.claim.convinces is not None:
            ran = self.convincing.result()
            if ran.failed:
                raise LabError(_failure(ran, self.claim.convinces, "by itself"))
            convinced = ran.stdout
        return MeasuredClaim(
            self.claim, SEEDS, sides["right"], sides["wrong"], watched.found, convinced
        )


def _figures(ran: Ran, path: Path, seed: int) -> dict[str, Any]:
    if ran.failed:
        raise LabError(_failure(ran, path, f"under seed {seed}"))
    try:
        figures = json.loads(ran.stdout.rstrip().splitlines()[-1])
    except (IndexError, ValueError):
        figures = None
    if not isinstance(figures, dict):
        raise LabError(f"{path} printed no figures under seed {seed}: its last line must be JSON")
    return figures


def _failure(ran: Ran, path: Path, how: str) -> str:
    return f"{path} failed {how}: {ran.failed}; run it with python to see where"


# ---------------------------------------------------------------------- one program


def context() -> Any:
    """Processes forked off one that has imported torch and nothing more; without fork, new
    processes."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    made = multiprocessing.get_context("forkserver")
    # The first optimizer imports torch._dynamo: once, and not in every child.
    made.set_forkserver_preload(["torch._dynamo", "trueloop.doctor.live.entry.block", __name__])
    return made


def run(context: Any, path: Path, seed: int, *, watched: bool = False) -> Ran:
    """Run a program in a separate process and folder, with one thread."""
    ours, theirs = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="trueloop-lab-") as folder:
        # A copy: what lies in our own package would not count as a program to be watched, and no
        # configuration of the doctor's lies around it.
        program = shutil.copy(path, folder)
        process = context.Process(target=_child, args=(theirs, program, seed, folder, watched))
        process.start()
        theirs.close()
        try:
            ran = ours.recv() if ours.poll(LONGEST) else None
        except EOFError:
            ran = Ran(failed="it ended without a word")
        finally:
            process.join(5.0)
            if process.is_alive():
                process.kill()
                process.join()
            ours.close()
    return ran if isinstance(ran, Ran) else Ran(failed=f"no end after {LONGEST:.0f} s")


def _child(pipe: Connection, path: str, seed: int, folder: str, watched: bool) -> None:
    import torch

    torch.set_num_threads(1)
    os.chdir(folder)
    sys.argv = [path, str(seed)]
    sys.path.insert(0, os.path.dirname(path))
    places = [os.path.join(folder, name) for name in (".stdout", ".stderr")]
    for number, place in enumerate(places, 1):
        with open(place, "wb") as file:
            os.dup2(file.fileno(), number)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for the whole run
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    ran = Ran()
    try:
        ran.found = _run_watched(path) if watched else _run_alone(path)
    except SystemExit as stop:
        ran.failed = "" if not stop.code else f"exit status {stop.code}"
    except BaseException as error:
        ran.failed = f"{type(error).__name__}: {' '.join(str(error).split())}"
    sys.stdout.flush()
    sys.stderr.flush()
    ran.stdout, ran.stderr = (Path(place).read_text("utf-8", "replace") for place in places)
    pipe.send(ran)
    pipe.close()


def _run_alone(path: str) -> list[LabFindings]:
    runpy.run_path(path, run_name="__main__")
    return []


def _run_watched(path: str) -> list[LabFindings]:
    """Both of the doctor's commands over a program: what `check` reads, and what `watch` sees."""
    from trueloop.doctor.live.entry.block import watch
    from trueloop.doctor.static.checking import check

    with watch(show=False) as watched:
        runpy.run_path(path, run_name="__main__")
    outcome = check([path], Configs(), jobs=1)
    failed = [*watched.errors, *(problem.message for problem in outcome.problems)]
    if failed:
        raise LabError(f"the doctor failed: {failed[0]}")
    return _together(outcome.findings, watched.findings)


def _together(read: Sequence[Finding], seen: Sequence[Finding]) -> list[LabFindings]:
    """One for each code and line; alarms first."""
    merged: dict[tuple[str, int], LabFindings] = {}
    for by, findings in (("check", read), ("watch", seen)):
        for each in findings:
            key = (each.code, each.place.line)
            before = merged[key].by if key in merged else ()
            # What was seen has the run's own figures.
            merged[key] = LabFindings(each, before if by in before else (*before, by))
    order = {key: (not found.is_alarm, key[1], key[0]) for key, found in merged.items()}
    return [merged[key] for key in sorted(merged, key=order.__getitem__)]
