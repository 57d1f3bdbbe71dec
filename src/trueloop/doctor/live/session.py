"""Watching this process, from the import of its torch to the report."""

from __future__ import annotations

import ctypes
import linecache
import os
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trueloop.doctor.config import Configs
from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.frames.clean_stacks import CleanStacks
from trueloop.doctor.live.patches.import_hook import ImportHook
from trueloop.doctor.model.findings import Finding, Related
from trueloop.doctor.rules.catalogue import BY_CODE, ENTRIES
from trueloop.doctor.rules.selection import codes_of
from trueloop.doctor.static.checking import CheckResult
from trueloop.doctor.static.inputs.discovery import FileProblem
from trueloop.doctor.static.inputs.documents import Document, Program
from trueloop.doctor.static.inputs.ignores import Ignore, hold_back, ignores_in
from trueloop.doctor.static.inputs.open_document import Documents
from trueloop.errors import ConfigError

if TYPE_CHECKING:
    from trueloop.doctor.live.memory.out_of_memory import Exhausted, OutOfMemory
    from trueloop.doctor.live.timing.step_timing import Speed
    from trueloop.doctor.live.track import Track
    from trueloop.doctor.live.watcher import Watcher

LIVE = frozenset(entry.code for entry in ENTRIES if "L" in entry.seen)
"""The codes of the rules that watch programs."""
_sessions: weakref.WeakSet[Session] = weakref.WeakSet()
_fork_is_minded: list[bool] = []


@dataclass
class Watched(CheckResult):
    """The report about a program that was watched."""

    updates: int = 0
    """Steps of optimizers in this process."""
    compiled_updates: int = 0
    """Those of them that were one compiled graph each, into which nobody sees."""
    optimizers: int = 0
    begun: bool = False
    """The program has imported torch, and was watched from there."""
    first: int | None = None
    """So many updates were asked for."""
    stopped: bool = False
    """It was stopped at its first error, as asked."""
    errors: list[str] = field(default_factory=list)
    """Errors of the watching itself."""
    memory: Exhausted | None = None
    """The use of memory of a program that ran out of it."""
    speed: Speed | None = None
    """Where the time of an update went; None if no update was timed."""
    asks_speed: bool = False
    """Reported however short the run was."""
    processes: int = 1
    """In which an optimizer stepped."""
    of_ranks: bool = False
    """All of them belong to a process group."""
    without_report: list[str] = field(default_factory=list)
    """Processes that trained, and that have not said what they found in the end."""
    timed_updates: int = 0
    """Updates of the process that `speed` is of; 0: all of them."""

    @property
    def alarms(self) -> bool:
        """There are errors or warnings."""
        return any(finding.severity != "advice" for finding in self.findings)


def live_codes(words: list[str], source: str) -> frozenset[str]:
    """The codes of live rules that `words` name. Raises `ConfigError`, which begins with `source`,
    for a word that names no rule, or none that watches programs."""
    for word in words:
        if not codes_of([word], source) & LIVE:
            in_data = any("D" in BY_CODE[code].seen for code in codes_of([word], source))
            where = "the data of trueloop train" if in_data else "source"
            remedy = "" if in_data else "use trueloop check, or "
            raise ConfigError(f"{source}: {word} is found only in {where}: {remedy}remove it")
    if not words:
        raise ConfigError(f"{source} names no rule: write codes such as TL101,TL2")
    return codes_of(words, source) & LIVE


class AsRun(Documents):
    """The program's files as they were when they ran, and the cells of IPython."""

    def __getitem__(self, path: str) -> Document:
        text = source_map.source_of(path).text or "".join(linecache.getlines(path))
        return Document(path, text, [Program(text)])


class Session:
    """One watching of this process; `begin`, then `end`.

    Args:
        configs: which rules are asked for in which file.
        first: watch so many updates only; None: all.
        fail_fast: end the program at the first finding that is an error.
        speed: report where the time goes, and give advice about it, however short the run was.
        folder: where the program began, the base of printed paths; empty: here.
    """

    def __init__(
        self,
        configs: Configs,
        *,
        first: int | None = None,
        fail_fast: bool = False,
        speed: bool = False,
        folder: str = "",
    ) -> None:
        self.watcher: Watcher | None = None
        self.stopped = False
        self.heard: Callable[[], None] | None = None
        """Called when there is a new finding, and when the watcher looks away."""
        self.bundles = os.getcwd()
        """Folder that computations without finite numbers are written to; empty: none is."""
        self._configs = configs
        self._first = first
        self._fail_fast = fail_fast
        self._speed = speed
        self._folder = folder or os.getcwd()
        self._process = os.getpid()
        self._arrival = ImportHook("torch", self._start)
        self._stacks = CleanStacks()
        self._errors: list[str] = []
        self._problems: dict[str, str] = {}
        self._documents = AsRun()
        self._ignores: dict[str, list[Ignore]] = {}
        self._judged: dict[int, tuple[int, bool]] = {}
        self._death: OutOfMemory | None = None
        self._memory: Exhausted | None = None
        configs.of(os.path.join(self._folder, "_"))  # complains now, not in the end

    # ------------------------------------------------------------------ on and off

    def begin(self) -> None:
        """Watch from now on, or from the moment that torch is imported."""
        if not _fork_is_minded and hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_leave_child)
            _fork_is_minded.append(True)
        _sessions.add(self)
        try:
            self._stacks.put_on()
            self._arrival.await_it()
        except Exception as error:  # the program continues without us
            self._failed(error)

    @property
    def is_here(self) -> bool:
        """This is the process that is watched, and no child of it."""
        return os.getpid() == self._process

    @property
    def rank(self) -> int | None:
        """The number of this process in the group that it trains in; None outside of any."""
        if self.watcher is None:
            return None
        from trueloop.doctor.live.processes import rank_identity  # imports torch

        return rank_identity.remembered(self.watcher.hub)

    def keep_bundles_in(self, folder: str) -> None:
        """Write computations without finite numbers to `folder`; empty: none is written."""
        self.bundles = folder
        if self.watcher is not None:
            self.watcher.nonfinite.bundles = folder

    def end_after_next_update(self) -> None:
        """Take all hooks off at the next update; what was found until then is kept."""
        if self.watcher is not None:
            self.watcher.sampling.end_after_next_update()

    def leave(self) -> None:
        """Take all hooks off and say nothing."""
        _sessions.discard(self)
        try:
            self._stacks.take_off()
            self._arrival.withdraw()
            if self.watcher is not None:
                self.watcher.stop()
        except Exception as error:  # the program continues
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self._errors.append(f"{type(error).__name__}: {error}")

    def _start(self) -> None:
        if not self.is_here:
            return
        try:
            from trueloop.doctor.rules.loading import load

            self._stacks.add_logging()
            from trueloop.doctor.live.watcher import Watcher

            rules = [load(entry) for entry in ENTRIES if self._may_be_asked(entry.code)]
            self.watcher = Watcher(rules, self._first)
            self.watcher.nonfinite.bundles = self.bundles
            if self._speed:
                self.watcher.timer.least = 0.0
            if self._fail_fast or self.heard is not None:
                self.watcher.recorder.judged = self._judge
            if self.heard is not None:
                self.watcher.hub.sampling_ended.subscribe(self.heard)
            self.watcher.start()
        except Exception as error:  # the program continues without us
            self._failed(error)
            watcher, self.watcher = self.watcher, None
            if watcher is not None:
                watcher.stop()

    def _may_be_asked(self, code: str) -> bool:
        select, ignore = self._configs.select, self._configs.ignore
        asked = select is None or code in select
        return code in LIVE and asked and code not in (ignore or ())

    # ------------------------------------------------------------------ stopping it

    def _judge(self, track: Track) -> None:
        """Pass on the new findings; stop the program if one of them is an error."""
        assert self.watcher is not None
        found = track.runner.findings()
        now = (len(found), self.watcher.hub.updates > 0)
        if now == self._judged.get(id(track), (0, False)):
            return
        self._judged[id(track)] = now
        if self.heard is not None:
            self.heard()
        if self._fail_fast and any(each.severity == "error" for each in self._asked(found)):
            self._stop()

    def _stop(self) -> None:
        assert self.watcher is not None
        self.stopped = self.watcher.hub.cut = True
        self.watcher.recorder.judged = None
        self.watcher.stop()
        main = threading.main_thread()
        if threading.current_thread() is not main:
            # This thread ends by what is raised below; the main one by what awaits it.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(main.ident or 0), ctypes.py_object(SystemExit)
            )
        # It passes `except Exception`, and neither Python nor a thread prints it.
        raise SystemExit(1)

    # ------------------------------------------------------------------ the report

    def record_crash(self, error: BaseException) -> None:
        """An exception is about to end what is watched: if memory has run out, what took it is
        measured while it is still there."""
        watcher = self.watcher
        if watcher is None or not self.is_here or self.stopped:
            return
        try:
            self._death = watcher.death_of(error)
        except Exception as ours:  # there may be no memory left for it
            watcher.hub.failed(ours)

    def explain_crash(self) -> None:
        """Find out what took the memory, once the program has ended and let go of it; torch must
        still be whole: its own exit handlers take it apart."""
        if self._death is None or self.watcher is None or not self.is_here:
            return
        death, self._death = self._death, None
        self.watcher.stop()
        try:
            self._memory = death.report()
        except Exception as error:  # the program itself has ended
            self.watcher.hub.failed(error)

    def end(self, *, cut: bool = False) -> Watched:
        """Take all hooks off; what was found. `cut`: the program did not come to its own end."""
        self.leave()
        self.explain_crash()
        if self.watcher is not None:
            self.watcher.hub.cut = self.watcher.hub.cut or cut
            return self._report(self.watcher.findings())
        return self._report([])

    def so_far(self, *, between_cells: bool = False) -> Watched:
        """The findings until now; `between_cells`: no code of the program is running."""
        if self.watcher is None:
            return self._report([])
        if between_cells:
            self.watcher.recorder.close_loops()
        return self._report(self.watcher.recorder.findings())

    def _report(self, findings: list[Finding]) -> Watched:
        watcher = self.watcher
        report = Watched([], [], 0, documents=self._documents, first=self._first)
        report.findings = _merged(self._asked(findings))
        for finding in report.findings:
            for place in (finding.place, *(related.place for related in finding.related)):
                report.shown[place.path] = self._name(place.path)
        report.findings.sort(key=lambda found: (report.name(found.place.path), *found.place[1:3]))
        report.files = len({finding.place.path for finding in report.findings})
        report.stopped = self.stopped
        report.begun = watcher is not None
        report.problems = [
            FileProblem(path, 0, message) for path, message in self._problems.items()
        ]
        report.errors = list(self._errors)
        if watcher is not None:
            report.updates = watcher.hub.updates
            report.compiled_updates = watcher.sampling.compiled_updates
            report.optimizers = len(watcher.recorder.things.optimizers)
            report.speed = watcher.timer.speed()
            report.errors += watcher.hub.errors
        report.asks_speed = self._speed
        report.memory = self._memory
        if self._memory is not None and self._memory.place.line:
            at = self._memory.place
            self._memory.place = at._replace(path=os.path.join(self._folder, at.path))
            report.shown[self._memory.place.path] = self._name(self._memory.place.path)
        return report

    def _asked(self, findings: list[Finding]) -> list[Finding]:
        """The findings that are selected, and that no comment in the program suppresses."""
        left: list[Finding] = []
        for finding in map(self._absolute, findings):
            path = finding.place.path
            whole = os.path.normpath(path)
            try:
                config = self._configs.of(whole)
            except ConfigError as error:
                self._problems[path] = str(error)
            else:
                if not config.wants(finding.code, whole) or config.excludes(whole):
                    continue
            if path not in self._ignores:
                self._ignores[path] = ignores_in(self._documents[path])
            left += hold_back([finding], self._ignores[path])
        return left

    def _absolute(self, finding: Finding) -> Finding:
        """Paths from the folder that the program began in, whatever the current one is."""

        def path(given: str) -> str:
            return given if given.startswith("<") else os.path.join(self._folder, given)

        at = finding.place
        return replace(
            finding,
            place=at._replace(path=path(at.path)),
            related=tuple(
                Related(each.place._replace(path=path(each.place.path)), each.label)
                for each in finding.related
            ),
        )

    def _name(self, path: str) -> str:
        cell = _cell_name(path)
        if cell or path.startswith("<"):
            return cell or path
        relative = os.path.relpath(path, self._folder)
        return path if relative.startswith("..") else relative


def _merged(findings: list[Finding]) -> list[Finding]:
    """Each once for its rule and place; threads find the same."""
    merged: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        key = (finding.code, *finding.place[:3])
        known = merged.get(key)
        merged[key] = (
            finding if known is None else replace(known, count=known.count + finding.count)
        )
    return list(merged.values())


def _cell_name(path: str) -> str:
    """IPython's name of the cell whose code has this path: `In[3]`; empty if it is not a cell."""
    interactive = sys.modules.get("IPython")
    shell: Any = None if interactive is None else interactive.get_ipython()
    name = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = None if name is None else name(path)
    return str(found[1]) if found else ""


def running() -> Session | None:
    """The session that watches this process."""
    return next((session for session in _sessions if session.is_here), None)


def _leave_child() -> None:
    """A forked child is a new process: it is not watched, and reports nothing."""
    for session in list(_sessions):
        session.leave()
