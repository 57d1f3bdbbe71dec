"""The measured training: a step and its feed, run for any number of updates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from trueloop.feed import Feed
from trueloop.records import StepRecord
from trueloop.step import Step


@dataclass(kw_only=True)
class Setup:
    """A training without an end. Its step has no schedule."""

    step: Step
    train: Feed
    val: Feed
    device: torch.device
    threads: int
    """CPU threads to compute on."""
    warm_updates: int = 1
    """Updates after which it is compiled, if it is to be."""
    _batches: Iterator[tuple[Any, bool]] | None = field(default=None, repr=False)

    def update(self) -> StepRecord:
        """Take micro-batches until an update is applied or skipped; its record."""
        if self._batches is None:
            self.step.model.train()
            self._batches = self._endless()
        while True:
            batch, last = next(self._batches)
            record = self.step(batch, last=last)
            if record.updated or record.skipped:
                return record

    def take_threads(self) -> None:
        """Let torch compute on as many CPU threads as this training does."""
        if torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)

    def wait(self) -> None:
        """Wait until the device has done all that it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        elif self.device.type == "mps":
            torch.mps.synchronize()

    def _endless(self) -> Iterator[tuple[Any, bool]]:
        """Batches of one epoch after the other, and whether each is its epoch's last."""
        while True:
            batches = self.train.epoch(self.step.epoch)
            for batch in batches:
                yield batch, batches.last
            self.step.end_epoch()
