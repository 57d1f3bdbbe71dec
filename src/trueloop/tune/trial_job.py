"""The request to a trial, and the knowledge about the training before the first one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MEASURE, RANGE, RACE, GOAL = "measure", "range", "race", "goal"


@dataclass(frozen=True, kw_only=True)
class TrialJob:
    """One trial's work."""

    kind: str
    """`measure` the throughput, learning-rate `range` test, `race`, or a whole run to a `goal`."""
    changes: dict[str, Any] = field(default_factory=dict)
    """Options, over those that the user gave."""
    against_base: bool = False
    """Measure in turns with the training as the user gave it."""
    seconds: float = 1.0
    updates: int = 100
    """Of a range test, or of a run to a goal."""


@dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """The knowledge of the process that has read the data."""

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
    compile_choices: tuple[Any, ...] = ("step", "model")
    """Values of `compile` to try, beside the one in `options`; False is without."""
    has_blocks: bool = False
    """The model has blocks whose activations can be computed again."""

    @property
    def on_cpu(self) -> bool:
        return self.device == "cpu"

    def updates_per_epoch(self, batch_size: int) -> int | None:
        if self.samples is None:
            return None
        return -(-self.samples // (batch_size * int(self.options["accumulate"])))

    def updates_of_run(self, batch_size: int = 0) -> int | None:
        """Updates of the whole run, with this batch size or (0) its own; None if unknown."""
        if self.options.get("updates") is not None:
            return int(self.options["updates"])
        each = self.updates_per_epoch(batch_size or int(self.options["batch_size"]))
        epochs = self.options.get("epochs")
        return None if each is None or epochs is None else each * int(epochs)

    def samples_of_run(self) -> float | None:
        """Training samples that the whole run takes; None if unknown."""
        options = self.options
        if options.get("epochs") is not None and self.samples is not None:
            return float(self.samples * options["epochs"])
        if options.get("updates") is not None:
            return float(options["updates"] * options["batch_size"] * options["accumulate"])
        return None
