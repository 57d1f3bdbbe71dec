"""Functions run on several ranks at once: processes forked from one that has imported torch."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

_CONTEXT = multiprocessing.get_context("forkserver")
_METHOD = multiprocessing.get_start_method()
"""By which a rank that torchrun had started would start its workers."""


def on_ranks(
    count: int, function: Callable[..., Any], *args: Any, seconds: float = 60.0
) -> list[Any]:
    """What `function(*args)` returns on each of `count` ranks of one gloo group, by rank.

    The function stands at the top of a test file; what it returns can be pickled. It runs with one
    thread, within `ranks.joined`. An exception on any rank is raised here, with its traceback.
    With `count` 1 there is no group, as without torchrun.
    """
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=seconds))
    pipes, processes = [], []
    for rank in range(count):
        ours, theirs = _CONTEXT.Pipe(duplex=False)
        environment = _environment(rank, count, store.port)
        process = _CONTEXT.Process(
            target=_child, args=(theirs, environment, _METHOD, function, args)
        )
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    try:
        return _results(pipes, seconds)
    finally:
        for process in processes:
            process.join(5.0)
            if process.is_alive():
                process.kill()
                process.join()


def _results(pipes: list[Any], seconds: float) -> list[Any]:
    results: list[Any] = []
    failures = []
    for rank, pipe in enumerate(pipes):
        # After one rank's failure the others may wait for it in vain.
        if not pipe.poll(3.0 if failures else seconds):
            failures.append(f"rank {rank} gave no answer")
            continue
        try:
            is_fine, value = pipe.recv()
        except EOFError:
            is_fine, value = False, "died without a word"
        if is_fine:
            results.append(value)
        else:
            failures.append(f"rank {rank}: {value}")
    if failures:
        raise AssertionError("\n".join(failures))
    return results


@dataclass(frozen=True)
class Ending:
    """How the process of a rank came to its end."""

    status: int | None
    """Negative: the signal that ended it. None: it had to be killed after `seconds`."""
    stderr: str
    seconds: float
    """Since all ranks were started."""


def endings(
    count: int,
    function: Callable[..., Any],
    *args: Any,
    seconds: float = 30.0,
    act: Callable[[list[int]], object] | None = None,
) -> list[Ending]:
    """How `count` ranks end that run `function(*args)`, each as a program of its own would.

    `function` joins the others by itself. `act` is called with the processes' numbers.
    """
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=seconds))
    with tempfile.TemporaryDirectory() as folder:
        processes, started = [], time.monotonic()
        for rank in range(count):
            environment, errors = _environment(rank, count, store.port), f"{folder}/{rank}"
            words = (environment, _METHOD, errors, function, args)
            processes.append(_CONTEXT.Process(target=_program, args=words))
            processes[-1].start()
        # The first of a session waits until the server has imported torch.
        files = [Path(f"{folder}/{rank}") for rank in range(count)]
        while not all(file.exists() for file in files) and time.monotonic() - started < 120.0:
            time.sleep(0.005)
        started = time.monotonic()
        if act is not None:
            act([process.pid for process in processes])
        ends: dict[int, float] = {}
        while len(ends) < count and time.monotonic() - started < seconds:
            for rank, process in enumerate(processes):
                if rank not in ends and process.exitcode is not None:
                    ends[rank] = time.monotonic() - started
            time.sleep(0.01)
        found = []
        for rank, process in enumerate(processes):
            status = process.exitcode
            if status is None:
                process.kill()
            process.join()
            stderr = Path(f"{folder}/{rank}").read_text("utf-8")
            found.append(Ending(status, stderr, ends.get(rank, seconds)))
    return found


def _program(
    environment: dict[str, str], method: str, errors: str,
    function: Callable[..., Any], args: tuple[Any, ...],
) -> None:  # fmt: skip
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    _begin(environment, method)
    function(*args)


def _begin(environment: dict[str, str], method: str) -> None:
    os.environ.update(environment)
    torch.set_num_threads(1)
    multiprocessing.set_start_method(method, force=True)


def _environment(rank: int, count: int, port: int) -> dict[str, str]:
    """What torchrun would put into the environment."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


def _child(
    pipe: Any, environment: dict[str, str], method: str,
    function: Callable[..., Any], args: tuple[Any, ...],
) -> None:  # fmt: skip
    _begin(environment, method)
    # What a rank starts comes from the server that it came from itself, not from one of its own.
    forkserver._forkserver.ensure_running = lambda: None  # type: ignore[attr-defined]
    from trueloop import ranks

    try:
        with ranks.joined(torch.device("cpu")):
            result = function(*args)
            ranks.barrier("the end of a test")
        pipe.send((True, result))
    except BaseException:
        pipe.send((False, traceback.format_exc()))
    finally:
        pipe.close()
