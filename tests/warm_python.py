"""`python train.py` and `python -m trueloop`, in an interpreter that has imported torch before: the
same program in the same empty `__main__`, for a fraction of what the imports cost."""

from __future__ import annotations

import importlib
import io
import json
import multiprocessing
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from multiprocessing import forkserver, resource_tracker, util
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from warm.imports import COMMAND, RANKS

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
_WARM = Path(__file__).with_name("warm")
_SHARED = "TRUELOOP_WARM_ORDERS"
"""The numbers of the sockets to the servers that all workers of pytest-xdist share."""
_servers: dict[tuple[str, ...], _Server] = {}
"""By the script, or `-m` for all else, and what they have imported."""


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen` of `python SCRIPT WORDS`, `python -m MODULE WORDS`, `python -c TEXT` or
    the command of a Python script on its own. Of its options it knows the streams, `cwd`, `env`,
    `text`, `pass_fds` and `start_new_session`; the process is not a child of this one."""

    imported: ClassVar[tuple[str, ...]] = (*COMMAND, *RANKS)
    """Beside torch, before the program begins."""
    serves: ClassVar[Sequence[str]] = ()
    """With some, it is a server, which imports these and forks in turn."""
    namespace: ClassVar[int | None] = None
    """A process whose mounts it shall see."""

    def _execute_child(self, args: Sequence[str], *options: Any) -> None:
        # Their order is that of CPython 3.11 to 3.14.
        passed, folder, environment, streams = *options[3:6], options[9:15]
        self._read, report = os.pipe()
        ours = [streams[0], streams[3], streams[5]]
        given = [stream if own == -1 else own for stream, own in enumerate(ours)]
        program, words = _parts(args)
        order = {
            "words": [program[0], *words],
            "module": program[1] if program[0] == "-m" else "",
            "text": program[1] if program[0] == "-c" else "",
            "passed": sorted(passed),
            "folder": os.path.abspath(folder or "."),
            "environment": dict(os.environ if environment is None else environment),
            "session": options[20],
            "namespace": self.namespace,
            "serves": self.serves,
        }
        server = _server(program, self.imported)
        server.send(order, [*given, report, *sorted(passed)])
        os.close(report)
        self._reports = b""
        self.pid = int(self._line(None) or 0)
        assert self.pid, f"the server is gone: {server.stderr()}"
        self._child_created = True
        self._close_pipe_fds(*streams)  # type: ignore[attr-defined]

    def _line(self, seconds: float | None) -> bytes | None:
        """The next report; None when there is none after `seconds`."""
        while b"\n" not in self._reports:
            ready, _, _ = select.select([self._read], [], [], seconds)
            if not ready:
                return None
            self._reports += os.read(self._read, 4096) or b"-9\n"
        line, _, self._reports = self._reports.partition(b"\n")
        return line

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        return self._ended(0.0)

    def _wait(self, timeout: float | None) -> int:
        if self._ended(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self.returncode

    def _ended(self, seconds: float | None) -> int | None:
        if self.returncode is None and (line := self._line(seconds)) is not None:
            os.close(self._read)
            self.returncode = int(line)
        return self.returncode


class Bare(Popen):
    """One that has imported only torch: each fork copies the tables of half the memory."""

    imported = ()


def run(
    command: Sequence[str], *, timeout: float = 120.0, start: type[Popen] = Popen, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """As `subprocess.run(..., capture_output=True)`, by `Popen` above."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(command, **{"stdin": subprocess.DEVNULL, **pipes, **options}) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def run_script(command: Sequence[str], folder: Path) -> tuple[int, bytes, bytes]:
    """Exit status, stdout and stderr of a command in `folder`, which is where its script lies; of
    what it may import only torch has been imported before."""
    program, _ = _parts(command)
    if program[0] == "-m":
        done = run(command, start=Bare, cwd=folder)
        return done.returncode, done.stdout, done.stderr
    link = _server(program, ()).link
    link.symlink_to(folder)
    try:
        done = run(command, start=Bare, cwd=folder)
    finally:
        link.unlink()
    here, there = bytes(folder), bytes(link)
    return done.returncode, done.stdout.replace(there, here), done.stderr.replace(there, here)


def call(function: Callable[..., Any], *args: Any, timeout: float = 120.0) -> Any:
    """What `function(*args)` returns in a process of its own, which has imported before what ranks
    do. The function stands at the top of a test file."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as process:
        method = multiprocessing.get_start_method()
        return process.submit(_called, method, function, *args).result(timeout)


def call_benchmark(name: str, *words: str, timeout: float = 120.0) -> tuple[int, str]:
    """The exit status of benchmarks/NAME.py in such a process, and what it prints."""
    return call(_benchmark, name, words, timeout=timeout)


def _benchmark(name: str, words: Sequence[str]) -> tuple[int, str]:
    sys.path.insert(0, str(BENCHMARKS))
    sys.argv[:] = [name, *words]
    with redirect_stdout(io.StringIO()) as out:
        status = importlib.import_module(name).main()
    return status, out.getvalue()


def _called(start_method: str, function: Callable[..., Any], *args: Any) -> Any:
    multiprocessing.set_start_method(start_method, force=True)  # of what the function starts
    return function(*args)


def _parts(command: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """The program that a server is started for, and its words."""
    words = list(command[1:] if command[0] == sys.executable else command)
    while words[0] in ("-u", "-B"):  # what these say is in our environment too
        del words[0]
    length = 2 if words[0] in ("-m", "-c") else 1
    return tuple(words[:length]), words[length:]


def _server(program: tuple[str, ...], imported: tuple[str, ...]) -> _Server:
    script = "-m" if program[0] in ("-m", "-c") else program[0]
    if _SHARED in os.environ:
        bare, full = (_Shared(int(number)) for number in os.environ.pop(_SHARED).split(","))
        _servers.update({("-m",): bare, ("-m", *Popen.imported): full})
    key = (script, *imported)
    if key not in _servers:
        _servers[key] = _Forked(imported) if script == "-m" and imported else _Server(script)
    return _servers[key]


class _Server:
    """A Python that forks before its program begins; it ends with this process, which it reads."""

    def __init__(self, script: str) -> None:
        self._place = TemporaryDirectory(prefix="trueloop-warm-")
        # Python takes the absolute path of its script when it starts: of one in a link, which then
        # leads to the folder of each run.
        self.link = Path(self._place.name, "run")
        words = ("-m", "any") if script == "-m" else (str(self.link / script),)
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Python makes its streams when it starts: those of most children are pipes.
        self._process = subprocess.Popen(
            [sys.executable, *words], pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **_variables(str(theirs.fileno()))},
        )  # fmt: skip
        theirs.close()

    def stderr(self) -> str:
        message: bytes = self._process.communicate(timeout=10.0)[1]
        return message.decode()

    def send(self, order: dict[str, Any], streams: list[int]) -> None:
        socket.send_fds(self.orders, [json.dumps(order).encode()], streams)


class _Forked(_Server):
    """One that has imported more than the one that it comes from."""

    def __init__(self, imported: tuple[str, ...]) -> None:
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        start = type("_Serving", (Bare,), {"serves": imported})
        self._process = start(
            ["-m", "any"], pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        theirs.close()


class _Shared(_Server):
    """One that a different process has started."""

    def __init__(self, number: int) -> None:
        self.orders = socket.socket(fileno=number)

    def stderr(self) -> str:
        return "what it said is with pytest's first process"


def warm_workers() -> None:
    """Let the workers that pytest-xdist starts come from one server, and give their own orders to
    it: each would import the same otherwise, and so would a server for each."""
    from execnet import gateway_base, gateway_io

    class Worker(gateway_io.Popen2IOMaster):
        def __init__(self, args: Sequence[str], execmodel: gateway_base.ExecModel) -> None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self.popen = Popen(args, **pipes, **with_our_servers())
            gateway_base.Popen2IO.__init__(
                self, self.popen.stdin, self.popen.stdout, execmodel=execmodel
            )

    gateway_io.Popen2IOMaster = Worker  # type: ignore[misc]


def with_our_servers() -> dict[str, Any]:
    """Options of a process that gives its own orders to the servers of this one."""
    servers = [_server(("-m",), imported) for imported in (Bare.imported, Popen.imported)]
    orders = [server.orders.fileno() for server in servers]
    return {
        "pass_fds": orders,
        "env": {**os.environ, _SHARED: ",".join(map(str, orders))},
    }


def _variables(orders: str) -> dict[str, str]:
    """What `warm/sitecustomize.py` reads, of the Python that is to be warm."""
    path = [str(_WARM), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYTHONPATH": os.pathsep.join(path),
        "TRUELOOP_WARM_PYTHON": orders,
    }


def warm_forkserver() -> None:
    """Let the server that multiprocessing forks processes from come from ours, which has imported
    what ranks do. There is one in a process, whoever starts it: our ranks, the lab, and
    `trueloop verify-resume`."""
    server = forkserver._forkserver  # type: ignore[attr-defined]
    start, alone, started = server.ensure_running, threading.Lock(), list[Popen]()

    def forked(_: object, words: Sequence[str], passed: Sequence[int]) -> int:
        # Each process would import pytest with the file of the test whose function it runs.
        started.append(Popen(["-c", f"import pytest; {words[-1]}"], pass_fds=passed))
        return started[-1].pid

    def ensure_running() -> None:
        resource_tracker.ensure_running()  # a Python that imports nothing, and a child
        with alone:
            if started and started[-1].poll() is None:
                return
            server._forkserver_pid = None
            spawn, util.spawnv_passfds = util.spawnv_passfds, forked  # type: ignore[attr-defined]
            try:
                start()
            finally:
                util.spawnv_passfds = spawn  # type: ignore[attr-defined]

    server.ensure_running = ensure_running
