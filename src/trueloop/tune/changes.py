"""Possible changes of a training, and the effect of each on its results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trueloop.tune.throughput import Throughput
from trueloop.tune.trial_job import TrainingFacts

SAME = "the same"
ROUNDING = "rounding"
OTHER = "changed"


@dataclass(frozen=True, kw_only=True)
class SpeedChange:
    """Options to try together, as one change."""

    name: str
    options: dict[str, Any]
    results: str
    """Its effect on the trained weights: `the same` bit for bit, `rounding` (sums in a different
    order, or shorter numbers), `changed` (a different training, which a race has to judge)."""


def candidates(facts: TrainingFacts, base: Throughput) -> tuple[list[SpeedChange], list[str]]:
    """The changes worth a separate trial on this machine, those that cost the least to measure
    first; and those that are not tried, and why."""
    found = [*_precisions(facts), *_threads(facts, base.threads)]
    workers, left_out = _workers(facts)
    return [*found, *workers, *_compiled(facts), *_recomputed(facts)], left_out


def _precisions(facts: TrainingFacts) -> list[SpeedChange]:
    known = ("bf16",) if facts.device in ("cpu", "mps") else ("bf16", "fp16")
    return [
        SpeedChange(name=f"precision {name}", options={"precision": name}, results=ROUNDING)
        for name in known
        if facts.options["precision"] == "fp32"
    ]


def _threads(facts: TrainingFacts, now: int) -> list[SpeedChange]:
    """One thread, and one for each core."""
    if not facts.on_cpu:
        return []
    counts = sorted({1, facts.cores} - {now})
    return [
        SpeedChange(name=f"threads {count}", options={"threads": count}, results=ROUNDING)
        for count in counts
    ]


def _workers(facts: TrainingFacts) -> tuple[list[SpeedChange], list[str]]:
    if not facts.needs_workers:
        return [], ["workers: the training data are whole batches, which workers do not load"]
    if not facts.takes_batch_size:
        return [], ["workers: the task's own DataLoader sets them"]
    now = facts.options["workers"]
    counts = sorted({0, 1, 2, 4, facts.cores} - {now})
    return [
        SpeedChange(name=f"workers {count}", options={"workers": count}, results=SAME)
        for count in counts
        if count <= facts.cores
    ], []


def _compiled(facts: TrainingFacts) -> list[SpeedChange]:
    return [
        SpeedChange(
            name=f"compile {value}" if value else "not compiled",
            options={"compile": value},
            results=ROUNDING,
        )
        for value in facts.compile_choices
    ]


def _recomputed(facts: TrainingFacts) -> list[SpeedChange]:
    """Where the model has blocks: it costs time, and gives memory."""
    if not facts.has_blocks or facts.options["recompute"]:
        return []
    return [SpeedChange(name="recompute 1", options={"recompute": "1"}, results=SAME)]


def scaled_rate(rate: float, factor: float, optimizer: str) -> float:
    """The learning rate for a batch `factor` times as large: times its square root for optimizers
    that divide by the size of the gradient (Malladi et al., "On the SDEs and scaling rules for
    adaptive gradient algorithms", NeurIPS 2022), in proportion for SGD (Goyal et al., 2017)."""
    return float(f"{rate * (factor if optimizer == 'sgd' else factor**0.5):.2e}")
