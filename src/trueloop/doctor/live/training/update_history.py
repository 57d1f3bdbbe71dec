"""The history of one optimizer's updates, and of the sampled ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trueloop.doctor.live.training.gradient_spikes import GradientSpike, GradientSpikes
from trueloop.doctor.live.training.loss_history import ConstantBaseline, LossHistory, Sizes
from trueloop.doctor.live.training.validation_history import Evaluations
from trueloop.doctor.model.events import ModelForward
from trueloop.doctor.model.things import Criterion, Loop, Model, Tensor

COURSE = 200
"""Updates after which it is asked how far training has come."""
SUPERVISED = frozenset(
    "CrossEntropyLoss NLLLoss BCELoss BCEWithLogitsLoss MSELoss L1Loss SmoothL1Loss HuberLoss"
    " PoissonNLLLoss GaussianNLLLoss MultiMarginLoss MultiLabelMarginLoss"
    " MultiLabelSoftMarginLoss SoftMarginLoss CTCLoss".split()
)
"""Losses that compare a prediction with what is true."""
LOOKED = 10
"""Updates that are looked at before a loss is taken for a measure of progress."""


TOGETHER = 64
"""Numbers that are noted before they are gone through, all at once."""
_OFTEN, _SELDOM, _EARLY = 16, 64, 512


def until_next_stand(updates: int) -> int:
    """Updates until it is looked again, while nobody looks, at where the backward is run from."""
    return -updates % (_OFTEN if updates < _EARLY else _SELDOM)


@dataclass(eq=False)
class UntrainedForward:
    """A forward that nothing is trained by."""

    event: ModelForward
    outputs: list[Any]
    """Weak references."""
    evaluated: bool = False
    """A loss was computed of it: it is an evaluation."""


@dataclass(eq=False)
class UpdateObservations:
    """The observations from one update to the next, in sampled updates."""

    whole: bool = True
    """It was looked at from its beginning."""
    losses: list[Tensor | None] = field(default_factory=list)
    """The losses at which backwards began."""
    pure: bool = True
    """They are what a loss function gave, perhaps scaled."""
    forwards: set[int] = field(default_factory=set)
    """Serial numbers of those with a graph."""
    asides: list[UntrainedForward] = field(default_factory=list)
    criteria: dict[Criterion, tuple[float, bool]] = field(default_factory=dict)
    """Calls of loss functions: the value, and whether the target is part of a loader's batch."""


@dataclass(eq=False)
class UpdateHistory:
    """The updates of one optimizer."""

    optimizer: Any
    """A weak reference."""
    updates: int = 0
    mixed: bool = False
    """Another optimizer steps in turns with it."""
    odd: bool = False
    """Its loss does not compare predictions with true values."""
    doubtful: bool = False
    """Its targets may come from a model: such a loss does not measure progress."""
    pure: bool = True
    """It is trained by what a loss function gives, and nothing beside."""
    acts: bool = False
    """Outputs of models are used for something else than a loss: actions, perhaps."""
    looked: int = 0
    kinds: set[str] = field(default_factory=set)
    models: set[Model] = field(default_factory=set)
    loops: tuple[Loop, ...] = ()
    site: Any = None
    """Of its backward."""
    small: Any = None
    """A weak reference to a parameter whose gradient is followed."""
    course: LossHistory = field(default_factory=LossHistory)
    guess: ConstantBaseline = field(default_factory=ConstantBaseline)
    sizes: Sizes = field(default_factory=Sizes)
    jumps: GradientSpikes = field(default_factory=GradientSpikes)
    evaluations: Evaluations = field(default_factory=Evaluations)
    losses: list[float] = field(default_factory=list)
    """Of the latest updates, not yet gone through."""
    squares: list[float] = field(default_factory=list)
    """Of the norm of the small gradient: the same."""
    level: float = 0.0
    """Sum of what the loss function gave, in the updates that were looked at."""
    trained: float = 0.0
    """Sum of what the backwards began at, in the same."""
    spread: float | None = None
    asked: int = COURSE
    """Update at which the course is asked for next."""

    def settle(self) -> None:
        """Go through what was noted."""
        losses, self.losses = self.losses, []
        squares, self.squares = self.squares, []
        if losses:
            self.course.add(losses)
            self.evaluations.trained(losses)
            self.jumps.trained(losses)
        self.jumps.usual(squares)

    def followed(self, loss: float) -> GradientSpike | None:
        """The loss of an update after a jump; the jump, if that ends with it."""
        self.course.add([loss])
        self.evaluations.trained([loss])
        return self.jumps.followed(loss)

    @property
    def is_supervised(self) -> bool:
        return not self.mixed and not self.odd and self.looked >= LOOKED
