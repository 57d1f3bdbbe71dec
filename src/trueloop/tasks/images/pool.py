"""Work on many images at once: in processes where there is much of it, else in threads.

Pillow decodes without Python's lock, but of a small image most of the time goes into Python.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import cast

from trueloop.tasks.progress_bar import progress_bar

Work = Callable[[range], dict[int, str]]
"""Does all there is to do on the images at these positions; returns the reasons of broken ones."""

_CHUNK = 128
_WORTH_PROCESSES = 1024
_WORTH_A_BAR = 2000
_MOST_PROCESSES = 64


def on_all(work: Work, total: int, *, what: str, quiet: bool) -> dict[int, str]:
    """`work` on all positions below `total`, with a progress bar on a terminal if there is much to
    do; the reasons of broken images.

    In forked processes `work` must write to files or to `multiprocessing`'s memory, not to its
    own. What it raises is raised here.
    """
    chunks = [range(start, min(start + _CHUNK, total)) for start in range(0, total, _CHUNK)]
    do = _in_processes if uses_processes(total) else _in_threads
    broken: dict[int, str] = {}
    with progress_bar(what, total, quiet, worth=_WORTH_A_BAR) as advance:
        for count, found in do(work, chunks):
            broken |= found
            advance(count)
    return dict(sorted(broken.items()))


def uses_processes(total: int) -> bool:
    """Whether so many images are worth separate processes.

    Only where they are forked: a fresh one would first import torch, for seconds.
    """
    return (
        total >= _WORTH_PROCESSES
        and sys.platform == "linux"
        and multiprocessing.get_start_method(allow_none=True) in (None, "fork")
        and not multiprocessing.current_process().daemon
        and _cores() > 1
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_threads(work: Work, chunks: list[range]) -> Iterator[tuple[int, dict[int, str]]]:
    with ThreadPoolExecutor(min(8, _cores())) as pool:
        for chunk, found in zip(chunks, pool.map(work, chunks), strict=True):
            yield len(chunk), found


def _in_processes(work: Work, chunks: list[range]) -> Iterator[tuple[int, dict[int, str]]]:
    """Each process is handed a chunk at a time, so that the loss of one costs no more than that."""
    left = chunks[::-1]
    crew = _started(work, min(_cores(), _MOST_PROCESSES))
    doing: dict[Connection, range] = {}
    try:
        for connection, _ in crew:
            _hand_out(connection, left, doing)
        while doing:
            for ready in wait(list(doing)):
                connection = cast(Connection, ready)
                chunk = doing.pop(connection)
                try:
                    found = connection.recv()
                except (EOFError, OSError):  # killed: for want of memory, say
                    left.insert(0, chunk)
                    continue
                if isinstance(found, OSError):
                    raise found
                _hand_out(connection, left, doing)
                yield len(chunk), found
        for chunk in left:  # of those that died
            yield len(chunk), work(chunk)
    finally:
        for connection, process in crew:
            connection.close()
            process.terminate()
            process.join()


def _hand_out(connection: Connection, left: list[range], doing: dict[Connection, range]) -> None:
    with suppress(OSError):  # it has died already
        if left:
            connection.send(left[-1])
            doing[connection] = left.pop()


def _started(
    work: Work, count: int
) -> list[tuple[Connection, multiprocessing.process.BaseProcess]]:
    context = multiprocessing.get_context("fork")
    crew: list[tuple[Connection, multiprocessing.process.BaseProcess]] = []
    for _ in range(count):
        here, there = context.Pipe()
        inherited = [here, *(connection for connection, _ in crew)]
        process = context.Process(target=_serve, args=(there, inherited, work), daemon=True)
        try:
            process.start()
        except OSError:  # no more processes, or no memory for one
            here.close()
            break
        finally:
            there.close()
        crew.append((here, process))
    return crew


def _serve(connection: Connection, inherited: list[Connection], work: Work) -> None:
    """The life of a process: it ends when its parent does, however that ends."""
    for other in inherited:  # held here, they would hide the parent's end from the others
        other.close()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(EOFError, OSError):
        while True:
            chunk = connection.recv()
            try:
                found: dict[int, str] | OSError = work(chunk)
            except OSError as error:
                found = error
            connection.send(found)
