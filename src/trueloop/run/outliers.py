"""Updates whose gradient norm was an outlier, as the log and the report name them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from trueloop.formatting import percent
from trueloop.records import StepRecord

_DONE = {"skip": "skipped", "clip": "clipped"}
_SHOWN = 8
"""Samples, or updates, that a sentence names; the log has the samples all."""


def read(records: Sequence[StepRecord]) -> list[float | None]:
    """For each record with an outlier check the median that its norm was compared with, None where
    it was not an outlier; one wait for all."""
    checks = [record.outlier for record in records if record.outlier is not None]
    if not checks:
        return []
    found = torch.stack([torch.stack((c.outlier.float(), c.median.float())) for c in checks])
    return [median if outlier else None for outlier, median in found.tolist()]


def note(record: StepRecord, norm: float, median: float, at: float) -> dict[str, Any]:
    """The line of the log for an outlier of the gradient norm `norm`; `at` is in seconds."""
    check = record.outlier
    assert check is not None
    samples = None if check.samples is None else check.samples()
    named = "" if samples is None else f"; samples {_listed(samples)}"
    # A skipped update is not counted in `update`: it would have been the next.
    number = record.update + record.skipped
    return {
        "kind": "note",
        "outlier": check.action,
        "epoch": record.epoch + 1,
        "batch": record.batch,
        "update": record.update,
        "message": f"update {number:,} {_DONE[check.action]}: gradient norm {norm:.3g}, "
        f"{norm / median:.3g} times the median {median:.3g}{named}",
        "grad_norm": norm,
        "median": median,
        "samples": samples,
        "time": round(at, 4),
    }


def is_outlier(line: dict[str, Any]) -> bool:
    """Whether a line of the log is of an outlier."""
    return line["kind"] == "note" and "outlier" in line


def summary(lines: Iterable[dict[str, Any]], updates: int) -> list[str]:
    """The report's sentences about them, one for each action; `updates` are all of the run."""
    found = [line for line in lines if is_outlier(line)]
    entries = []
    for action, done in _DONE.items():
        numbers = [
            line["update"] + (action == "skip") for line in found if line["outlier"] == action
        ]
        if numbers:
            several = f"{len(numbers):,} updates were" if len(numbers) > 1 else "1 update was"
            entries.append(
                f"{several} {done} because the gradient norm was far above its running median "
                f"({percent(len(numbers) / max(updates, 1))} of the updates: {_listed(numbers)}); "
                "metrics.jsonl names the samples."
            )
    return entries


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:_SHOWN])
    return shown + (f" and {len(numbers) - _SHOWN:,} more" if len(numbers) > _SHOWN else "")
