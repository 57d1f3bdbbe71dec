"""The log of each rank, in its own file: log/rank-K.jsonl in the run directory.

    {"kind":"start","rank":1,"ranks":4,"host":"node7","pid":4711,"device":"cuda:1","threads":2,
     "started":"2025-01-31T12:00:00+00:00"}
    {"kind":"update","epoch":1,"batch":31,"update":32,"seconds":0.012,"time":3.21}
    {"kind":"eval","epoch":1,"update":32,"seconds":0.31,"memory_bytes":734003200,"time":3.55}
    {"kind":"output","text":"loaded 3 shards","time":0.4}
    {"kind":"warning","text":"UserWarning: …","time":0.5}
    {"kind":"end","error":null,"time":60.2}

`seconds` of an update are those since the one before on this rank, with what it has waited for the
others; `memory_bytes` is the most that the process (of a GPU: its tensors) has taken so far. Lines
of a rank other than 0 are what it prints and warns, which is shown nowhere else. A resumed run
appends to the same files, each part with its own `start`.
"""

from __future__ import annotations

import io
import json
import os
import socket
import sys
import time
import warnings
from contextlib import ExitStack, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from trueloop import ranks
from trueloop.checkpoint import cannot_write
from trueloop.errors import TrueloopError
from trueloop.records import EvalRecord, StepRecord

_FLUSH_SECONDS = 2.0


class RankLog:
    """A sink for `StepRecord` and `EvalRecord`, and a context manager around the training.

    It reads no tensor, so no rank waits for its device. Raises `RunError` where the file cannot be
    written.
    """

    def __init__(self, run_path: Path, device: torch.device) -> None:
        self.path = run_path / "log" / f"rank-{ranks.rank()}.jsonl"
        self._device = device
        self._began = self._last = time.perf_counter()
        self._lines: list[str] = []
        self._due = 0.0
        self._stack = ExitStack()

    def __enter__(self) -> RankLog:
        self._write("start", **self._start())
        self.flush()
        if not ranks.is_main():
            printed = _TeeStream(self)
            self._stack.callback(printed.end)
            self._stack.enter_context(redirect_stdout(printed))
            self._stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("default")
            warnings.showwarning = self._on_warning
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stack.close()
        said = None if error is None else " ".join(f"{type(error).__name__}: {error}".split())
        self._write("end", error=said)
        try:
            self.flush()
        except TrueloopError:
            if error is None:  # else what has ended the run is the news
                raise

    def __call__(self, record: StepRecord | EvalRecord) -> None:
        now = time.perf_counter()
        if isinstance(record, EvalRecord):
            epoch = None if record.epoch is None else record.epoch + 1
            place: dict[str, Any] = {"epoch": epoch, "update": record.update}
            seconds = round(record.seconds, 4)
            self._write("eval", **place, seconds=seconds, memory_bytes=peak_memory(self._device))
        elif record.updated or record.skipped:
            seconds = round(now - self._last, 6)
            place = {"epoch": record.epoch + 1, "batch": record.batch, "update": record.update}
            self._write("update", **place, seconds=seconds)
        else:
            return
        self._last = now
        if now >= self._due:
            self.flush()

    def write(self, kind: str, text: str) -> None:
        """A line of what the rank prints or warns."""
        self._write(kind, text=text)

    def flush(self) -> None:
        """Write what is waiting."""
        self._due = time.perf_counter() + _FLUSH_SECONDS
        lines, self._lines = self._lines, []
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write("".join(lines))
        except OSError as error:
            raise cannot_write(self.path, error) from None

    def _write(self, kind: str, **facts: Any) -> None:
        facts["time"] = round(time.perf_counter() - self._began, 4)
        self._lines.append(json.dumps({"kind": kind, **facts}, ensure_ascii=False) + "\n")

    def _start(self) -> dict[str, Any]:
        return {
            "rank": ranks.rank(),
            "ranks": ranks.world_size(),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "device": str(self._device),
            "threads": torch.get_num_threads(),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    def _on_warning(
        self, message: Warning | str, category: type[Warning], *_: Any, **__: Any
    ) -> None:
        self.write("warning", f"{category.__name__}: {message}")


class _TeeStream(io.TextIOBase):
    """A replacement of stdout: each line becomes a line of the log."""

    def __init__(self, log: RankLog) -> None:
        self._log = log
        self._rest = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._log.write("output", line)
        return len(text)

    def end(self) -> None:
        """A last line without a newline."""
        if self._rest:
            self.write("\n")


def peak_memory(device: torch.device) -> int | None:
    """Bytes, at their most: of a GPU's tensors, else of this process; None if unknown."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
