"""The run's log: metrics.jsonl, one JSON object a line.

    {"kind":"update","epoch":1,"batch":31,"update":32,"loss":0.9,"grad_norm":1.2,"lr":0.001,
     "samples":64,"skipped":false,"time":0.21}
    {"kind":"eval","epoch":1,"update":32,"train_loss":0.9,"val_loss":0.8,"time":0.25,"seconds":0.01}

    {"kind":"update","epoch":3,"batch":7,"update":500,"updates":100,"loss":0.9,"grad_norm":1.2,…}

    {"kind":"note","update":32,"message":"The lines of updates 1 to 32 were lost: …","time":0.25}

    {"kind":"note","outlier":"skip","epoch":1,"batch":31,"update":32,"grad_norm":84.1,"median":7.0,
     "samples":[17,903],"message":"update 33 skipped: gradient norm 84.1, …","time":0.25}

A line with `updates` covers that many updates (`fit(log_every=…)`), up to its own: `loss` and the
parts of it are their means, weighted by samples, `samples` and `tokens` their sums; the gradient
norm and the learning rate are those of the last. Where batches are token ids, a line has `tokens`.
An evaluation has the epoch that it ends, or in which it was made.

A note says what a reader must know of the log, such as a gap (`from` and `to`, both included), or
an update whose gradient norm was an outlier, with its samples where they are known. An update's
line has each named part of the loss beside `loss`, and `lr/NAME` for each parameter group whose
learning rate differs from `lr`, the first group's. Epochs count from 1, as in everything that
people read, and batches, being positions, from 0; `time` is in seconds of this run's life so far: a
resumed run continues the time of its log. NaN and the infinities are the strings "NaN", "Infinity"
and "-Infinity".
"""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from trueloop.checkpoint import WriteError, cannot_write, write_atomic
from trueloop.errors import ConfigError, RunError
from trueloop.files import NotAFileError, cannot_read, open_regular, read_bytes
from trueloop.records import EvalRecord, StepRecord, direction, is_better, loss_beside
from trueloop.run import outliers
from trueloop.run.json_files import spell, unspell
from trueloop.run.record_buffer import ReadRecord, RecordBuffer

LOG = "metrics.jsonl"
"""Its name in the run directory."""
Place = tuple[int | None, int | None]


class MetricsLog:
    """A sink for `StepRecord` and `EvalRecord` that never makes a step wait for the device.

    Records are kept as they come and their tensors read many at once: when 256 have gathered, when
    `flush_seconds` have passed, at an evaluation, and at `flush` or `close`. Of the step records
    only those that end a window are logged (`updated` or `skipped`).

    Args:
        path: the file; one that is there is continued.
        every_updates: k logs updates 1, k + 1, 2k + 1, …; evaluations and skipped updates are
            always logged.
        flush_seconds: how long a record may wait.
        on_error: `stop` raises `RunError` when the file cannot be written (a full disk); `continue`
            warns once and keeps the lines in memory (some 200 bytes each) until it can; only
            `flush`, `length` and `truncate` raise then.
        by_line: log only the updates that `line` is called with.

    Raises:
        ConfigError: `every_updates` is below 1.
        RunError: the file cannot be opened.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        every_updates: int = 1,
        flush_seconds: float = 2.0,
        on_error: str = "stop",
        by_line: bool = False,
    ) -> None:
        if every_updates < 1:
            raise ConfigError(f"every_updates is {every_updates}: write 1 or more")
        self.path = Path(path)
        self.every_updates = every_updates
        self.on_error = on_error
        self._unwritten = bytearray()
        self._is_stuck = False
        self.by_line = by_line
        self._buffer = RecordBuffer(flush_seconds)
        self._open()

    def _open(self) -> None:
        try:
            # Unbuffered: what is left of a write that failed half-way is ours to write later.
            self._file = open_regular(self.path, "ab", buffering=0)
            earlier = _cut_torn_line(self.path)
        except NotAFileError as error:
            raise RunError(f"{self.path} is {error.kind}, not a log: remove it") from None
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._began = time.perf_counter() - earlier

    def __call__(self, record: StepRecord | EvalRecord) -> None:
        """Keep a record, to be written soon.

        Args:
            record: what `fit` hands to its sinks.
        """
        if isinstance(record, StepRecord):
            is_chosen = (record.update - 1) % self.every_updates == 0 and not self.by_line
            is_logged = record.skipped or (record.updated and is_chosen)
            if is_logged or record.outlier is not None:
                self.line(record, int(is_logged))
        else:
            seconds = time.perf_counter() - self._began
            self._try_to_write([*self._drain(), _eval_line(record, seconds)])

    def line(self, record: StepRecord, updates: int) -> None:
        """Log a line that covers several updates, as `fit(log_every=…)` has it.

        Args:
            record: with the means over them.
            updates: how many.
        """
        if self._buffer.add(record, updates):
            self._try_to_write(self._drain())

    def flush(self) -> None:
        """Write what is waiting. A checkpoint calls this first, so that the log reaches as far."""
        self._write(self._drain())

    def length(self) -> int:
        """Return the file's bytes, after all that was waiting is written and forced to the disk."""
        self.flush()
        os.fsync(self._file.fileno())
        return self.path.stat().st_size

    def truncate(
        self,
        update: int,
        epoch: int,
        batch: int | None = None,
        evaluations: Iterable[EvalRecord] | None = None,
    ) -> None:
        """Drop what was logged after a checkpoint, so that a resumed run continues there.

        Args:
            update: updates applied at the checkpoint.
            epoch: that of the next batch to train on, from 0.
            batch: its position in the epoch, from 0. Without it, an update skipped just after the
                checkpoint cannot be distinguished from one just before it, and both are kept.
            evaluations: those that stay; None: those of epochs before.
        """
        made = None if evaluations is None else {place_of_eval(each) for each in evaluations}
        self.flush()
        self.close()
        kept = [
            raw
            for raw, line in _lines(self.path)
            if _is_before(line, update=update, epoch=epoch, batch=batch, made=made)
        ]
        write_atomic(self.path, b"".join(raw + b"\n" for raw in kept))
        self._open()

    def close(self) -> None:
        """Write what is waiting and close the file. Closing twice is fine."""
        if not self._file.closed:
            try:
                self._try_to_write(self._drain())
                if lost := self._unwritten.count(b"\n"):
                    _warn(f"the last {lost} lines of {self.path} could not be written")
            finally:
                self._file.close()

    def __enter__(self) -> MetricsLog:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _drain(self) -> list[str]:
        lines = []
        for one in self._buffer.read():
            seconds = one.at - self._began
            if one.updates:
                lines.append(_update_line(one, seconds))
            if one.grad_norm is not None and one.median is not None:
                noted = outliers.note(one.record, one.grad_norm, one.median, seconds)
                lines.append(_spelled(noted))
        return lines

    def _write(self, lines: list[str]) -> None:
        self._unwritten += "".join(lines).encode()
        try:
            while self._unwritten:
                del self._unwritten[: self._file.write(self._unwritten)]
        except OSError as error:
            raise cannot_write(self.path, error) from None
        if self._is_stuck:
            self._is_stuck = False
            _warn(f"{self.path} can be written again: every waiting line has been added")

    def _try_to_write(self, lines: list[str]) -> None:
        """Write, or as `on_error` says keep the lines for later."""
        try:
            self._write(lines)
        except WriteError as error:
            if self.on_error == "stop":
                raise
            if not self._is_stuck:
                self._is_stuck = True
                _warn(f"{error}; the run continues, and keeps its log lines in memory meanwhile")


def _warn(what: str) -> None:
    warnings.warn(what, RuntimeWarning, stacklevel=4)


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Every line of the log at `path`; empty if there is none yet.

    A last line that a crash cut short is dropped; any other corrupt line raises `RunError`.
    """
    if not path.exists():
        return []
    return [unspell(line) for _, line in _lines(path)]


def _lines(path: Path) -> list[tuple[bytes, dict[str, Any]]]:
    """The lines as bytes and parsed, without a torn last one."""
    try:
        raw = read_bytes(path).split(b"\n")
    except OSError as error:
        raise RunError(cannot_read(path, error)) from None
    raw.pop()  # empty, or torn: a line is whole when its newline is there
    lines = []
    for number, text in enumerate(raw, start=1):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if isinstance(line, dict) and line.get("kind") in ("update", "eval", "note"):
            lines.append((text, line))
        else:
            raise RunError(f"{path} is corrupt in line {number}: delete that line and try again")
    return lines


def fill_gaps(
    path: Path,
    *,
    update: int,
    evals: Sequence[EvalRecord],
    seconds: float,
    notes: Sequence[str],
    pending: int = 0,
) -> list[str]:
    """Say in the log what it has lost; returns the gaps in words, none if there are none.

    `update` updates had been applied when a checkpoint was written, in `seconds`: an update up to
    there that has no line is named by a note. Missing evaluations are written again from `evals`,
    which the checkpoint contains. `notes` are further ones to write. Of the updates the last
    `pending` are still to be logged. For a log that every update goes into.
    """
    lines = [line for _, line in _lines(path)] if path.exists() else []
    known: set[int] = set(range(update - pending + 1, update + 1))
    for line in lines:
        if line["kind"] == "update" and not line["skipped"]:
            known.update(range(line["update"] - line.get("updates", 1) + 1, line["update"] + 1))
        if line["kind"] == "note" and "from" in line:
            known.update(range(line["from"], line["to"] + 1))
    gaps, new = [], []
    for first, last in _ranges(sorted(set(range(1, update + 1)) - known)):
        what = f"updates {first:,} to {last:,}" if last > first else f"update {first:,}"
        gaps.append(what)
        message = f"The lines of {what} were lost: the curves have a gap there."
        new.append({**_note(message, last, seconds), "from": first, "to": last})
    new += [_note(message, update, seconds) for message in notes]
    there = {(line["epoch"], line["update"]) for line in lines if line["kind"] == "eval"}
    for record in evals:
        if record.epoch is not None and place_of_eval(record) not in there:
            new.append(json.loads(_eval_line(record, seconds)))
    if new:
        # In order of the updates; where they are as many, what was there comes first.
        whole = sorted([*lines, *new], key=lambda line: line["update"] or 0)
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in whole)
        write_atomic(path, text.encode())
    return gaps


def _note(message: str, update: int, seconds: float) -> dict[str, Any]:
    return {"kind": "note", "update": update, "message": message, "time": round(seconds, 4)}


def _ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending numbers as the first and last of each unbroken run."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def _cut_torn_line(path: Path) -> float:
    """Cut off a torn last line, so that the next one starts a new line.

    Returns the time of the last whole line, in seconds; 0 if there is none.
    """
    size = path.stat().st_size
    with open_regular(path, "r+b") as file:
        start = max(0, size - 65536)
        file.seek(start)
        tail = file.read()
        whole = tail[: tail.rfind(b"\n") + 1]
        if len(whole) < len(tail):
            file.truncate(start + len(whole))
    last = whole.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        return float(json.loads(last)["time"])
    except (ValueError, KeyError, TypeError):
        return 0.0


def place_of_eval(record: EvalRecord) -> Place:
    """Which evaluation of its run it is: its line's epoch, from 1, and update."""
    return None if record.epoch is None else record.epoch + 1, record.update


def _is_before(
    line: dict[str, Any], *, update: int, epoch: int, batch: int | None, made: set[Place] | None
) -> bool:
    if line["kind"] == "note" and "batch" not in line:
        return bool(line["update"] <= update)
    if line["kind"] == "eval":
        if line["epoch"] is None:
            return line["update"] is None or line["update"] <= update
        if made is not None:
            return (line["epoch"], line["update"]) in made
        return bool(line["epoch"] <= epoch)
    if batch is not None and (line["epoch"] - 1, line["batch"]) >= (epoch, batch):
        return False
    return bool(line["update"] <= update)


def _update_line(one: ReadRecord, at: float) -> str:
    record = one.record
    several = f',"updates":{one.updates}' if one.updates > 1 else ""
    tokens = f',"tokens":{record.tokens}' if record.tokens else ""
    more = "".join(f",{json.dumps(name)}:{_number(value)}" for name, value in one.parts.items())
    for name, lr in record.lrs.items():
        if lr != record.lr:
            more += f",{json.dumps(f'lr/{name}')}:{_number(lr)}"
    # Written out by hand, being by far the most frequent line: five times the speed of json.dumps.
    return (
        f'{{"kind":"update","epoch":{record.epoch + 1},"batch":{record.batch}'
        f',"update":{record.update}{several},"loss":{_number(one.loss)}'
        f',"grad_norm":{_number(one.grad_norm)}'
        f',"lr":{_number(record.lr)}{more},"samples":{int(record.samples)}{tokens}'
        f',"skipped":{"true" if record.skipped else "false"},"time":{at:.4f}}}\n'
    )


def _number(value: float | None) -> str:
    if value is None:
        return "null"
    text = spell(value)
    return f'"{text}"' if isinstance(text, str) else repr(float(text))


def _eval_line(record: EvalRecord, at: float) -> str:
    epoch = None if record.epoch is None else record.epoch + 1
    line: dict[str, Any] = {"kind": "eval", "epoch": epoch, "update": record.update}
    line.update({name: spell(float(score)) for name, score in record.scores.items()})
    line["time"] = round(at, 4)
    line["seconds"] = round(record.seconds, 4)
    return _spelled(line)


def _spelled(line: dict[str, Any]) -> str:
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n"


def best_eval(evals: list[dict[str, Any]], monitor: str | None) -> dict[str, Any] | None:
    """The evaluation with the best finite `monitor`, of equals the one with the lowest loss, and of
    those the earliest; None without one."""
    if monitor is None:
        return None
    mode, best = direction(monitor) or "min", None
    for line in evals:
        if not math.isfinite(line.get(monitor, math.nan)):
            continue
        before = None if best is None else best[monitor]
        losses = {"loss": loss_beside(line, monitor), "best_loss": loss_beside(best or {}, monitor)}
        if is_better(line[monitor], before, mode, **losses):
            best = line
    return best
