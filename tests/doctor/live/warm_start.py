"""A process that has imported torch and the watcher, and forks once for each command to run.

    python warm_start.py

reads one JSON object a line, `{"words", "folder", "out", "err"}`, runs `trueloop WORDS` in that
folder as a process of its own, with stdout and stderr in those files, and answers with its exit
status. Such a start costs a fraction of importing torch again.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

_servers: list[subprocess.Popen[str]] = []


def trueloop(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """`trueloop WORDS`, run in `folder` by this test process's server, which is started once."""
    if not _servers:
        _servers.append(
            subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
    server, out, err = _servers[0], folder / ".stdout", folder / ".stderr"
    assert server.stdin is not None
    assert server.stdout is not None
    order = {"words": words, "folder": str(folder), "out": str(out), "err": str(err)}
    server.stdin.write(json.dumps(order) + "\n")
    server.stdin.flush()
    status = int(server.stdout.readline())
    done = subprocess.CompletedProcess(words, status, out.read_text(), err.read_text())
    out.unlink()
    err.unlink()
    return done


def _serve() -> bool:
    """Fork for each order; True in the children, False once there are no more orders."""
    import torch
    from watcher_imports import import_and_freeze

    import trueloop.cli.watch  # noqa: F401

    torch.set_num_threads(1)
    import_and_freeze()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            os.chdir(order["folder"])
            for stream, path in ((1, order["out"]), (2, order["err"])):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.argv = ["trueloop", *order["words"]]
            return True
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return False


def _end(run: Callable[[], int]) -> None:
    """Run it and end as the interpreter does, but for taking down every module, which takes longer
    than most programs here."""
    status = 1
    try:
        status = run()
    except SystemExit as stop:
        status = 0 if stop.code is None else stop.code if isinstance(stop.code, int) else 1
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__" and _serve():
    from trueloop.cli import main

    _end(main)
