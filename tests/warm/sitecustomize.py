"""Before its program begins, this interpreter imports torch and forks once for each order; with
this folder on PYTHONPATH and the variable below set, as `tests/warm_python.py` does it. Without
a socket it imports and goes on, as the server that multiprocessing forks its processes from.

Each child goes on as a Python that has just started, but for what is imported: no frame of ours
lies under its program, nor any argument, path or variable.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "TRUELOOP_WARM_PYTHON"
"""The number of the socket that orders come by, or nothing, and what to import, with commas
between."""
_before: set[str] = set()
"""The modules that were imported before the fork."""


def _warm() -> None:
    import atexit

    atexit.register(_leave)  # before all others: the last to be called
    from imports import warm

    number, *modules = os.environ[VARIABLE].split(",")
    warm(modules)
    del sys.modules["imports"]
    _before.update(sys.modules)
    if number:
        _serve(number)
    else:
        here = os.path.dirname(__file__)
        del os.environ[VARIABLE]
        others = [each for each in os.environ["PYTHONPATH"].split(os.pathsep) if each != here]
        os.environ["PYTHONPATH"] = os.pathsep.join(others)
        if not others:
            del os.environ["PYTHONPATH"]
        sys.path.remove(here)


def _serve(number: str) -> None:
    """Fork for each order, and report its process and its exit status; returns in the children."""
    import json
    import select
    import socket

    orders = socket.socket(fileno=int(number))
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
                os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
                os.close(report)
                continue
            line, given, _, _ = socket.recv_fds(orders, 1 << 20, 4)
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
            for stream in given[:3]:
                os.close(stream)


def _begin(order: dict[str, object], given: list[int]) -> None:
    if order["session"]:
        os.setsid()
    if order["namespace"]:
        _enter(f"/proc/{order['namespace']}/ns")
    os.chdir(str(order["folder"]))
    os.write(given[3], b"%d\n" % os.getpid())
    for stream, source in enumerate(given[:3]):
        os.dup2(source, stream)
    for each in given:
        os.close(each)
    os.environ.clear()
    os.environ.update(order["environment"])  # type: ignore[call-overload]
    sys.path.remove(os.path.dirname(__file__))
    sys.argv[:] = order["words"]  # type: ignore[call-overload]
    if sys.argv[0] == "-m":
        sys.modules["__main__"].__dict__["SystemExit"] = _Exit


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
