"""Before its program begins, this interpreter imports torch and forks once for each order; with
this folder on PYTHONPATH and the variable below set, as `tests/warm_python.py` does it.

Each child goes on as a Python that has just started, but for what is imported: no frame of ours
lies under its program, nor any argument, path or variable. Where this one was started with `-m`,
whatever module, each child runs the module, or the text of `-c`, of its order. One whose order is
to serve imports more, and forks in turn.
"""

from __future__ import annotations

import os
import sys
from typing import Any

VARIABLE = "TRUELOOP_WARM_PYTHON"
"""The number of the socket that orders come by, and what to import, with commas between."""
_before: set[str] = set()
"""The modules that were imported before the fork."""


def _warm() -> None:
    import atexit

    atexit.register(_leave)  # before all others: the last to be called
    _import_and_serve(int(os.environ[VARIABLE]), [])


def _import_and_serve(number: int, modules: list[str]) -> None:
    from huge_pages import collapse
    from imports import warm

    warm(modules)
    if sys.orig_argv[1] == "-m":  # it takes half a second: those of one script fork a few times
        collapse()
    del sys.modules["huge_pages"], sys.modules["imports"]
    _before.update(sys.modules)
    _serve(number)


def _serve(number: int) -> None:
    """Fork for each order, and report its process and its exit status; returns in the children."""
    import json
    import select
    import socket
    from contextlib import suppress

    orders = socket.socket(fileno=number)
    events = select.poll()
    events.register(orders, select.POLLIN)
    reports: dict[int, tuple[int, int]] = {}  # by the child's descriptor: its number, its report
    while True:
        for descriptor, _ in events.poll():
            if descriptor != orders.fileno():
                child, report = reports.pop(descriptor)
                events.unregister(descriptor)
                os.close(descriptor)
                _, status = os.waitpid(child, 0)
                with suppress(BrokenPipeError):  # who has ordered it has ended before it
                    os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
                os.close(report)
                continue
            line, given, _, _ = socket.recv_fds(orders, 1 << 20, 16)
            if not line:
                os._exit(0)
            child = os.fork()
            if child == 0:
                others = [report for _, report in reports.values()]
                for each in (orders.detach(), *reports, *others):
                    os.close(each)
                return _begin(json.loads(line), given)
            descriptor = os.pidfd_open(child)
            events.register(descriptor, select.POLLIN)
            reports[descriptor] = (child, given[3])
            for each in (*given[:3], *given[4:]):
                os.close(each)


def _begin(order: dict[str, Any], given: list[int]) -> None:
    if order["session"]:
        os.setsid()
    if order["namespace"]:
        _enter(f"/proc/{order['namespace']}/ns")
    os.chdir(str(order["folder"]))
    os.write(given[3], b"%d\n" % os.getpid())
    os.close(given[3])
    _keep(dict(zip([0, 1, 2, *order["passed"]], [*given[:3], *given[4:]], strict=True)))
    os.environ.clear()
    os.environ.update(order["environment"])
    if order["serves"]:
        _import_and_serve(order["passed"][0], order["serves"])
        return
    sys.path.remove(os.path.dirname(__file__))
    sys.argv[:] = order["words"]
    if order["module"]:
        sys.modules["__main__"].__dict__["SystemExit"] = _Exit
    if order["module"] or order["text"]:
        _replace_program(order["module"], order["text"])


def _keep(files: dict[int, int]) -> None:
    """Give open files the numbers that they have where they come from."""
    import fcntl

    free = 1 + max(*files, *files.values())
    for number, file in files.items():
        files[number] = fcntl.fcntl(file, fcntl.F_DUPFD, free)
        os.close(file)
    for number, file in files.items():
        os.dup2(file, number)
        os.close(file)


def _replace_program(module: str, text: str) -> None:
    """Let Python, which runs its `-m` next, find this program there."""
    import runpy
    from importlib.machinery import ModuleSpec

    details = runpy._get_module_details  # type: ignore[attr-defined]

    def found(_: str, error: type[Exception]) -> Any:
        runpy._get_module_details = details  # type: ignore[attr-defined]
        if module:
            return details(module, error)
        # `-c` has none of what a module has.
        head = "import sys; sys.argv[0] = '-c'; __spec__ = None; del __file__, sys\n"
        code = compile(head + text, "<string>", "exec")
        return "__main__", ModuleSpec("__main__", None, origin="-c"), code

    runpy._get_module_details = found  # type: ignore[attr-defined]


class _Exit(SystemExit):
    """What `__main__.py` raises; it keeps the status that Python asks for when it ends."""

    status: int | None = None

    @property
    def code(self) -> object:
        (code,) = self.args or (None,)
        if isinstance(code, int | None):
            _Exit.status = (code or 0) & 0xFF
        return code


def _leave() -> None:
    """End here, once all that the program holds is gone: Python would take down every module that
    was imported before the fork, and first copy each page of their memory."""
    if _Exit.status is None:
        return
    import gc

    for name in sys.modules.keys() - _before:
        del sys.modules[name]
    del sys.modules["__main__"]
    gc.collect()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError):  # no such stream, or nobody reads it: Python has a status
        return
    os._exit(_Exit.status)


def _enter(namespaces: str) -> None:
    import ctypes

    c = ctypes.CDLL(None, use_errno=True)
    for kind in ("user", "mnt"):
        if os.readlink(f"{namespaces}/{kind}") != os.readlink(f"/proc/self/ns/{kind}"):
            opened = os.open(f"{namespaces}/{kind}", os.O_RDONLY)
            if c.setns(opened, 0):
                raise OSError(ctypes.get_errno(), f"cannot enter {namespaces}/{kind}")
            os.close(opened)


if VARIABLE in os.environ:
    try:
        _warm()
    except Exception:  # Python would print it, and go on cold
        import traceback

        traceback.print_exc()
        os._exit(1)
