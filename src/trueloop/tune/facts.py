"""What is asked of a trial, and what is known of the training before the first one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MEASURE, RANGE, RACE = "measure", "range", "race"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One trial's work."""

    kind: str
    """`measure` the throughput, learning-rate `range` test, `race`."""
    changes: dict[str, Any] = field(default_factory=dict)
    """Options, over those that the user gave."""
    against_base: bool = False
    """Measure in turns with the training as the user gave it."""
    seconds: float = 1.0
    updates: int = 100
    """Of a range test."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the process that has read the data knows."""

    task: str
    options: dict[str, Any]
    """Every option of the run and its value: the user's, or what the task makes of its data."""
    device: str
    cores: int
    samples: int | None
    """Training samples; None of a stream."""
    tokens_per_sample: int | None = None
    needs_workers: bool = False
    """Workers can load the training data, sample by sample; arrays and whole batches need none."""
    takes_batch_size: bool = True
    """False of a loader, which has its own."""
    read_seconds: float = 0.0
    compile_choices: tuple[str, ...] = ("model", "step")
    """Values of `compile` to try, beside the one in `options`."""
    has_blocks: bool = False
    """The model has blocks whose activations can be computed again."""

    @property
    def on_cpu(self) -> bool:
        return self.device == "cpu"

    def updates_per_epoch(self, batch_size: int) -> int | None:
        if self.samples is None:
            return None
        return -(-self.samples // (batch_size * int(self.options["accumulate"])))

    def samples_of_run(self) -> float | None:
        """Training samples that the whole run takes; None where nobody can say."""
        options = self.options
        if options.get("epochs") is not None and self.samples is not None:
            return float(self.samples * options["epochs"])
        if options.get("updates") is not None:
            return float(options["updates"] * options["batch_size"] * options["accumulate"])
        return None
