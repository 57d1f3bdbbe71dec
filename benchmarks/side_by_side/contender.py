"""A contender's process: it makes its loop, and then takes a turn whenever it is asked for one.

    python -m side_by_side.contender WORKLOAD NAME SETTINGS

Requests are lines on standard input (`turn`, `end`), answers lines of JSON on what was standard
output; what libraries print goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from side_by_side.workload import MEMORY, LeftOutError, Settings, Workload

QUIET = {
    "PYTHONWARNINGS": "ignore",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "KERAS_BACKEND": "torch",
    "POSSIBLE_USER_WARNINGS": "off",  # Lightning's tips
}


class Contender:
    """The process, as the one that measures sees it."""

    def __init__(self, workload: str, name: str, settings: Settings) -> None:
        self.name = name
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed with the process
        command = [sys.executable, "-m", "side_by_side.contender", workload, name]
        self._process = subprocess.Popen(
            [*command, json.dumps(asdict(settings), default=str)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, **QUIET},
        )

    def answer(self) -> dict[str, Any]:
        """What it says next. Raises `LeftOutError` if it cannot take part, `RuntimeError` if it
        has died."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._log.seek(0)
            raise RuntimeError(f"{self.name} ended {self._process.returncode}\n{self._log.read()}")
        found: dict[str, Any] = json.loads(line)
        if "left out" in found:
            raise LeftOutError(found["left out"])
        return found

    def ask(self, what: str) -> dict[str, Any]:
        """Let it take a `turn`, or `end`."""
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                stream.close()


def megabytes(field: str) -> float:
    """VmRSS (now) or VmHWM (at its highest) of this process."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def main() -> None:
    module, name, told = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    settings = Settings(**told | {key: Path(told[key]) for key in ("data", "scratch")})
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(what: dict[str, Any]) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    import torch

    torch.set_num_threads(settings.threads)
    torch.manual_seed(0)
    before = megabytes("VmRSS")
    try:
        workload: Workload = importlib.import_module(f"side_by_side.{module}").WORKLOAD
        turn = workload.contenders[name](settings)
    except (ImportError, LeftOutError, _refusal()) as error:
        answer({"left out": " ".join(f"{type(error).__name__}: {error}".split())[:300]})
        return
    answer({"ready": True})
    for line in sys.stdin:
        if line.strip() != "turn":
            break
        answer(turn())
    answer({MEMORY: round(megabytes("VmHWM") - before, 1)})


def _refusal() -> type[Exception]:
    from trueloop.errors import UserError

    return UserError


if __name__ == "__main__":
    main()
