"""Watching on in the processes that a program starts with `multiprocessing` and that may train.

The process that starts them puts a few lines of code for the child into what `multiprocessing`
hands over (a forked child has them already), and gives all of them one folder. A child leaves there
what it has found: when that is new, and at its end. Whoever was started first reads the folder.
"""

from __future__ import annotations

import inspect
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from trueloop.doctor.config import Configs
from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.patches.import_hook import ImportHook
from trueloop.doctor.live.patches.patching import Patch, disguised
from trueloop.doctor.live.processes import report_exchange
from trueloop.doctor.live.session import Session

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from trueloop.doctor.live.hub import Method, P, R


_ROOT = str(Path(__file__).parents[4])
"""Folder of the package."""
_LETTER = """\
import sys
try:
    sys.path.append({root!r})
    try:
        from trueloop.doctor.live.processes import children
    finally:
        sys.path.remove({root!r})
    children.arrive({order!r})
except Exception:
    pass
"""
"""Run first in a spawned process. An error in it must not end the process, which runs as it would
unwatched, and is missing in the report."""
_TRAINS = ("torch.multiprocessing.spawn", "torch.distributed.elastic.multiprocessing.api")
"""Modules of libraries that call a function of the program's in each process."""


@dataclass(frozen=True)
class Order:
    """How a child is to be watched."""

    folder: str
    """Where it leaves what it has found; empty until a process is started."""
    home: str
    """The folder that paths in the report are relative to."""
    select: tuple[str, ...] | None
    ignore: tuple[str, ...] | None
    first: int | None
    fail_fast: bool
    speed: bool
    bundles: str


class ChildWatch:
    """The watching of one process that the program started."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._session = Session(
            Configs(_codes(order.select), _codes(order.ignore)),
            first=order.first,
            fail_fast=order.fail_fast,
            speed=order.speed,
            folder=order.home,
        )
        self._session.bundles = order.bundles
        self._session.heard = self._leave_so_far
        self._has_ended = False
        self._file = f"{os.getpid()}-{time.monotonic_ns()}.json"

    @property
    def is_here(self) -> bool:
        """This is the process that is watched, and no child of it."""
        return self._session.is_here

    def begin(self) -> None:
        """Watch from now on, or from the moment that torch is imported."""
        before_exit(lambda status: self.end(cut=status != 0))
        self._session.begin()

    def end(self, *, cut: bool) -> None:
        """Write all findings; once, and only in this process."""
        if self._has_ended or not self.is_here:
            return
        self._has_ended = True
        watched = self._session.end(cut=cut)
        if watched.updates or watched.findings or watched.errors:
            self._leave(watched, ended=True)

    def _leave_so_far(self) -> None:
        if self.is_here and not self._has_ended:
            self._leave(self._session.so_far(), ended=False)

    def _leave(self, watched: Any, *, ended: bool) -> None:
        import multiprocessing

        name = multiprocessing.current_process().name
        part = report_exchange.ProcessReport(name, self._session.rank, ended, watched)
        path = os.path.join(self._order.folder, self._file)
        try:
            with open(f"{path}.new", "w", encoding="utf-8") as file:
                file.write(report_exchange.as_text(part))
            os.replace(f"{path}.new", path)
        except OSError:
            # Whoever reads has ended, and the folder is gone; or the disk is full, and the report
            # names this process as one that has not said what it found.
            return


class ChildProcesses:
    """Watches the processes that this one starts, from `begin` on."""

    def __init__(self, order: Order) -> None:
        self.errors: list[str] = []
        self._order = order
        self._patches: list[Patch] = []
        self._minds_spawning = False
        self._starting = threading.local()
        self._arrival = ImportHook("multiprocessing.process", self._mind_processes)

    def begin(self) -> None:
        """Follow what is started from now on."""
        self._arrival.await_it()

    def _mind_processes(self) -> None:
        kind: Any = sys.modules["multiprocessing.process"].BaseProcess
        user_frames.stage(kind._bootstrap.__code__, hides=False)
        self._patch(kind, "_bootstrap", self._bootstrap)
        self._patch(kind, "start", self._start)

    def _mind_spawning(self) -> None:
        from multiprocessing import spawn

        if not self._minds_spawning:
            self._minds_spawning = True
            self._patch(spawn, "get_preparation_data", self._prepare)

    def _patch(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        patch = Patch(owner, name, disguised(wrap(original), original))
        patch.put_on()
        self._patches.append(patch)

    def _start(self, original: Callable[[BaseProcess], R]) -> Callable[[BaseProcess], R]:
        def start(process: BaseProcess) -> R:
            if may_train(process):
                self._make_folder()
                self._mind_spawning()
                self._starting.process = process
            try:
                return original(process)
            finally:
                self._starting.process = None

        return start

    def _make_folder(self) -> None:
        if self._order.folder:
            return
        try:
            folder = tempfile.mkdtemp(prefix="trueloop-watch-")
        except OSError as error:
            self.errors.append(f"processes that were started are not watched: {error}")
            return
        self._order = replace(self._order, folder=folder)

    def parts(self) -> list[report_exchange.ProcessReport]:
        """The reports of the processes that were started, and of those that they started."""
        if not os.path.isdir(self._order.folder):  # none was started
            return []
        found = []
        for name in sorted(os.listdir(self._order.folder)):
            if name.endswith(".json"):
                path = os.path.join(self._order.folder, name)
                with open(path, encoding="utf-8") as file:
                    found.append(report_exchange.read(file.read()))
        return found

    def end(self) -> None:
        """Follow no more, and remove what they have left."""
        while self._patches:
            self._patches.pop().take_off()
        self._arrival.withdraw()
        if self._order.folder:
            shutil.rmtree(self._order.folder, ignore_errors=True)

    def _prepare(
        self, original: Callable[[str], dict[str, Any]]
    ) -> Callable[[str], dict[str, Any]]:
        """The data that a spawned process gets before it imports the program."""

        def get_preparation_data(name: str) -> dict[str, Any]:
            data = original(name)
            if getattr(self._starting, "process", None) is not None and self._order.folder:
                data["trueloop"] = _Letter(self._order)
            return data

        return get_preparation_data

    def _bootstrap(self, original: Method[BaseProcess, P, R]) -> Method[BaseProcess, P, R]:
        """Around all that a child does."""

        def _bootstrap(process: BaseProcess, /, *args: P.args, **kwargs: P.kwargs) -> R:
            child = _here()  # of a spawned process; a forked one begins here
            if child is None and self._order.folder and may_train(process):
                child = _begun(self._order)
            if child is None:
                return original(process, *args, **kwargs)
            status: R | None = None
            try:
                status = original(process, *args, **kwargs)
                return status
            finally:
                child.end(cut=status != 0)

        return _bootstrap


_children: list[ChildWatch] = []


def _here() -> ChildWatch | None:
    return next((child for child in _children if child.is_here), None)


def _begun(order: Order) -> ChildWatch | None:
    try:
        child = ChildWatch(order)
        child.begin()
    except Exception:
        if os.environ.get("TRUELOOP_WATCH_DEBUG"):
            raise
        return None  # the program continues without us, as it would by itself
    _children.append(child)
    return child


class _Letter:
    """Unpickled, it makes the process watched in which that happens."""

    def __init__(self, order: Order) -> None:
        self._order = order

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (_LETTER.format(root=_ROOT, order=asdict(self._order)), {})


def arrive(order: dict[str, Any]) -> None:
    """Watch this process, which was just started, and those that it starts."""
    given = Order(**order)
    if _begun(given) is not None:
        ChildProcesses(given).begin()


def may_train(process: BaseProcess) -> bool:
    """A process runs code of the program's own, and is not a worker of a loader, a pool or a server
    of a library's."""
    run = getattr(type(process), "run", None)
    if _is_users(run):
        return True
    target = getattr(process, "_target", None)
    target = getattr(target, "func", target)  # of a `functools.partial`
    return getattr(target, "__module__", None) in _TRAINS or _is_users(target)


def _is_users(called: Any) -> bool:
    if not hasattr(called, "__code__"):
        called = inspect.getattr_static(type(called), "__call__", None)
    code = getattr(called, "__code__", None)
    return code is not None and user_frames.kind_of(code.co_filename) == "user"


def _codes(given: tuple[str, ...] | None) -> frozenset[str] | None:
    return None if given is None else frozenset(given)


def before_exit(act: Callable[[int], None]) -> None:
    """`os._exit` runs no exit handlers: what is to be done before it ends the process, given the
    status."""
    original = os._exit

    def _exit(status: int) -> NoReturn:
        act(status)
        original(status)

    os._exit = _exit
