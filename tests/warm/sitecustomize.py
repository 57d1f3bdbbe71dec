"""Before its program begins, this interpreter imports torch and forks once for each order; with
this folder on PYTHONPATH and the variable below set, as `tests/warm_python.py` does it.

Each child goes on as a Python that has just started, but for what is imported: no frame of ours
lies under its program, nor any argument, path or variable.
"""

from __future__ import annotations

import os


def _read_order() -> bytes:
    """One line of stdin, past no buffer that a child would inherit; empty at the end."""
    line = b""
    while not line.endswith(b"\n"):
        if not (more := os.read(0, 1)):
            return b""
        line += more
    return line


def _begin(order: dict[str, object]) -> None:
    import sys

    os.chdir(str(order["folder"]))
    for stream, (path, flags) in enumerate(
        [
            (os.devnull, os.O_RDONLY),
            (str(order["out"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (str(order["err"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ]
    ):
        opened = os.open(path, flags)
        os.dup2(opened, stream)
        os.close(opened)
    os.environ.clear()
    os.environ.update(order["environment"])  # type: ignore[call-overload]
    sys.path.remove(os.path.dirname(__file__))
    sys.argv[:] = order["words"]  # type: ignore[call-overload]


def _serve() -> None:
    import gc
    import json

    import torch
    import torch._dynamo  # the first optimizer would, in every child

    torch.set_num_threads(1)
    gc.freeze()  # else the first collection in each child copies what it looks at
    while line := _read_order():
        child = os.fork()
        if child == 0:
            return _begin(json.loads(line))
        _, status = os.waitpid(child, 0)
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


if "TRUELOOP_WARM_PYTHON" in os.environ:
    _serve()
