"""`python train.py` and `python -m trueloop`, in an interpreter that has imported torch before: the
same program in the same empty `__main__`, for a fraction of what the import costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

_WARM = Path(__file__).with_name("warm")
_servers: dict[tuple[str, ...], _Server] = {}


def run(command: Sequence[str], folder: Path) -> tuple[int, bytes, bytes]:
    """Exit status, stdout and stderr of a command in `folder`: `python SCRIPT WORDS`,
    `python -m MODULE WORDS` or that of a Python script on its own.

    For each script and module a server is started once.
    """
    words = list(command[1:] if command[0] == sys.executable else command)
    length = 2 if words[0] == "-m" else 1
    program = tuple(words[:length])
    if program not in _servers:
        _servers[program] = _Server(program)
    return _servers[program].run(words[length:], folder)


class _Server:
    """A Python that forks before its program begins; it ends with this process, which it reads."""

    def __init__(self, program: tuple[str, ...]) -> None:
        self._first = program[0]
        self._place = TemporaryDirectory(prefix="trueloop-warm-")
        # Python takes the absolute path of its script when it starts: of one in a link, which then
        # leads to the folder of each run.
        self._link = Path(self._place.name, "run")
        words = program if program[0] == "-m" else (str(self._link / program[0]),)
        path = os.pathsep.join([str(_WARM), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": path, "TRUELOOP_WARM_PYTHON": "1"},
        )  # fmt: skip

    def run(self, words: Sequence[str], folder: Path) -> tuple[int, bytes, bytes]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        out, err = Path(self._place.name, "out"), Path(self._place.name, "err")
        order = {
            "words": [self._first, *words], "folder": str(folder), "out": str(out),
            "err": str(err), "environment": dict(os.environ),
        }  # fmt: skip
        self._link.symlink_to(folder)
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        self._link.unlink()
        here, there = bytes(folder), bytes(self._link)
        texts = [file.read_bytes().replace(there, here) for file in (out, err)]
        return status, texts[0], texts[1]
