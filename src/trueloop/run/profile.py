"""A torch profiler's trace of some updates: profile/trace.json.gz in the run directory.

    {"first": 101, "updates": 20, "seconds": 0.041,
     "phases": [{"name": "backward", "seconds": 0.013, "share": 0.32}, …],
     "operations": [{"name": "aten::addmm", "calls": 120, "seconds": 0.006, "share": 0.15}, …],
     "memory_bytes": 734003200, "device": "cpu"}

is profile/summary.json beside it, for the report. `memory_bytes` is the most that the process (of a
GPU: its tensors) has taken so far.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from trueloop import _options
from trueloop.checkpoint import WriteError, cannot_write, write_atomic
from trueloop.feed.epoch import Epoch
from trueloop.records import EvalRecord, StepRecord
from trueloop.run import trace
from trueloop.run.json_files import write_json
from trueloop.run.rank_log import peak_memory
from trueloop.step import Step
from trueloop.step.phases import PHASES, marked, planned_updates, replace

FOLDER, TRACE, SUMMARY = "profile", "trace.json.gz", "summary.json"
WARM_UP = 100
"""Updates before the first that is traced, where the run is long enough: memory pools, caches and
compiled graphs are filled by then."""


class Profile:
    """A sink for `StepRecord`, and a context manager around `fit`.

        with Profile(run.path, step, updates=20) as profile:
            fit(step, train, epochs=3, run=run, sinks=[profile])

    It traces `updates` updates after up to 100 others, and looks at the step in no other one. What
    is trained stays bitwise the same. A run that ends before leaves the trace of fewer. Put it
    last, so that an update ends with it. On an accelerator it waits for the device twice: before
    the first of these updates and after the last.
    """

    def __init__(
        self, run_path: Path, step: Step, updates: int, *, done: int = 0, planned: int | None = None
    ) -> None:
        self._folder = Path(run_path) / FOLDER
        self._step = step
        self._wanted = _options.whole("updates", updates, 1, 20)
        planned = planned_updates(step) if planned is None else planned
        left = None if planned is None else max(1, planned - done)
        if left is not None:
            self._wanted = min(self._wanted, left)
        room = 2 * WARM_UP if left is None else left - self._wanted
        self._begins = min(WARM_UP, room // 2)
        """Updates of this process before the first that is traced."""
        self._number = done
        """Of the last update, skipped or not."""
        self._seen = 0
        self._torch: Any = None
        self._stack = ExitStack()
        self._update: Any = None
        self._is_over = False

    def __enter__(self) -> Profile:
        if self._begins == 0:
            self._prepare()
            self._start()
        return self

    def __call__(self, record: StepRecord | EvalRecord) -> None:
        if not isinstance(record, StepRecord) or not (record.updated or record.skipped):
            return
        if self._is_over:
            return
        self._seen += 1
        self._number += 1
        if self._seen == self._begins + self._wanted:
            self._end()
        elif self._seen > self._begins:
            self._next()
        elif self._seen == self._begins:
            self._start()
            self._next()
        if self._torch is None and self._seen == self._begins - 1:
            self._prepare()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._is_over:
            return
        if self._seen > self._begins:
            self._end()
            return
        self._stack.close()
        if error is None:
            warnings.warn(
                f"no update was profiled: the run ended after {_counted(self._seen)}, and the "
                f"trace would begin after {self._begins:,}",
                RuntimeWarning,
                stacklevel=1,
            )

    def _prepare(self) -> None:
        """Load the profiler, one update early: the first use takes a while."""
        # Before its first use, or it writes about itself to the terminal.
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        from torch.profiler import ProfilerActivity, profile

        kinds = [ProfilerActivity.CPU]
        if self._step.device.type == "cuda":
            kinds.append(ProfilerActivity.CUDA)
        self._torch = profile(activities=kinds)
        self._torch.prepare_trace()

    def _start(self) -> None:
        if self._torch is None:
            self._prepare()
        self._wait()
        self._torch.start_trace()
        self._stack.callback(self._torch.stop_trace)
        self._stack.callback(self._end_update)
        self._stack.callback(self._wait)  # the last update ends with its work on the device
        self._stack.enter_context(marked(self._step, self._mark))
        arriving = Epoch.__next__

        def marked_arriving(batches: Epoch) -> Any:
            with self._mark(trace.DATA):
                return arriving(batches)

        # Of the class: Python looks for __next__ nowhere else.
        replace(self._stack, Epoch, "__next__", marked_arriving)

    def _wait(self) -> None:
        if self._step.device.type == "cuda":
            torch.cuda.synchronize(self._step.device)

    @contextmanager
    def _mark(self, name: str) -> Iterator[None]:
        if self._update is None:  # the first of the run: it begins with its first phase
            self._begin_update()
        with _range(name):
            yield

    def _begin_update(self) -> None:
        self._update = _range(f"update {self._number + 1}")
        self._update.__enter__()

    def _end_update(self) -> None:
        if self._update is not None:
            self._update.__exit__(None, None, None)
            self._update = None

    def _next(self) -> None:
        self._end_update()
        self._begin_update()

    def _end(self) -> None:
        """Stop the trace, and write it and its summary."""
        self._is_over = True
        self._stack.close()
        updates = min(self._seen - self._begins, self._wanted)
        try:
            self._write(updates)
        except WriteError as error:
            what = f"{error}; the run continues without its profile"
            warnings.warn(what, RuntimeWarning, stacklevel=1)
        finally:
            self._torch = None

    def _write(self, updates: int) -> None:
        try:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "trace.json"
                self._torch.export_chrome_trace(str(file))
                text = file.read_bytes()
            self._folder.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError) as error:
            cause = error if isinstance(error, OSError) else OSError(0, str(error))
            raise cannot_write(self._folder / TRACE, cause) from None
        found = trace.summary(json.loads(text), updates, (trace.DATA, *PHASES))
        write_atomic(self._folder / TRACE, gzip.compress(text, 6, mtime=0))
        device = self._step.device
        memory = peak_memory(device)
        write_json(self._folder / SUMMARY, {**found, "memory_bytes": memory, "device": device.type})


def in_short(summary: Mapping[str, Any]) -> str:
    """Where the time has gone, in one line."""
    phases = summary["phases"]
    shares = ", ".join(f"{phase['name']} {phase['share']:.1%}" for phase in phases)
    return f"{_counted(summary['updates'])}, {shares}"


def _counted(updates: int) -> str:
    return f"{updates:,} update{'' if updates == 1 else 's'}"


def _range(name: str) -> AbstractContextManager[Any]:
    span: AbstractContextManager[Any] = torch.profiler.record_function(trace.PREFIX + name)
    return span
