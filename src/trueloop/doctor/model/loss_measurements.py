"""Measurements of losses: of their shapes, their targets and the batches that they compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from trueloop.doctor.model.measurements import Measured
from trueloop.doctor.model.things import Criterion, Loop


@dataclass(eq=False, kw_only=True)
class PaddingScored(Measured):
    """Targets of a loss, over several batches, where what the model was given is padding."""

    criterion: Criterion
    classes: bool
    """The targets are classes, and not numbers."""
    value: float
    """Of all these targets."""
    padded: int
    targets: int
    """How many of them there are, and targets in all."""
    by: Literal["padding_idx", "mask", "tails"]
    """How the program shows what is padding."""
    fill: int
    """The embedding's `padding_idx`."""
    elsewhere: bool
    """Other targets have that value, too."""


@dataclass(eq=False, kw_only=True)
class HandwrittenSoftmax(Measured):
    """A softmax over the samples of a batch, of whose result a loss picks each sample's class."""

    kind: str
    """`softmax` or `log_softmax`."""
    shape: tuple[int, int]


class CountedBatch(NamedTuple):
    """One of several whose gradients one update adds up."""

    targets: int
    """Those that its mean counts."""
    samples: int
    """The length of what the model was given; 0 where unknown."""
    loop: Loop | None
    turn: int
    """The innermost loop, and its turn."""


@dataclass(eq=False, kw_only=True)
class UpdateOfMicroBatches(Measured):
    """An update of several micro-batches, the mean of each of which counts the same; `place` is
    that of the loss."""

    micro_batches: list[CountedBatch]


@dataclass(eq=False, kw_only=True)
class PairwiseLoss(Measured):
    """A loss that compares the samples of one batch with each other."""

    backward: int
    """Serial number of the `Backward` that it begins."""
    rows: int


@dataclass(eq=False, kw_only=True)
class BroadcastDifference(Measured):
    """The difference of a prediction and a target, of which each was broadcast to a square."""

    input: tuple[int, ...]
    target: tuple[int, ...]
