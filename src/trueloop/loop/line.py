"""A line of the log that sums up several updates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from trueloop.evaluation import Means
from trueloop.records import StepRecord


class LogLine:
    """Means and counts of the updates since the last line of the log.

    The line has the means of their losses and parts, weighted by samples; the sums of their samples
    and tokens; and gradient norm, learning rate and position of the update that it is written at.
    """

    def __init__(self) -> None:
        self._means = Means()
        self._counts = [0, 0, 0]
        """Updates, samples, tokens."""

    def add(self, record: StepRecord) -> None:
        """Take in an update, without reading its tensors; one that was skipped counts for
        nothing."""
        if record.updated:
            self._means.add(record)
            counts = (1, record.samples, record.tokens)
            self._counts = [a + b for a, b in zip(self._counts, counts, strict=True)]

    def write(self, record: StepRecord, sinks: Iterable[Any]) -> None:
        """Hand the line to the sinks that have a method `line(record, updates)`, and start the next
        line."""
        updates, samples, tokens = self._counts
        if not updates:
            return
        means = self._means.tensors()
        loss = means.pop("loss")
        whole = record._replace(
            loss=loss, parts=means, samples=samples, tokens=tokens, updated=True, skipped=False,
            outlier=None,
        )  # fmt: skip
        for sink in sinks:
            if (line := getattr(sink, "line", None)) is not None:
                line(whole, updates)
        self._means.reset()
        self._counts = [0, 0, 0]

    def state_dict(self) -> dict[str, Any]:
        return {"counts": list(self._counts), **self._means.state_dict()}

    def load_state_dict(self, state: dict[str, Any], device: torch.device) -> None:
        self._counts = list(state["counts"])
        self._means.load_state_dict(state, device)
