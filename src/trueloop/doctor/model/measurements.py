"""Measurements: events that carry numbers which were read off the running program.

Each has its own class; a rule asks for it by a method `on_<measurement>`, as for any event.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

from trueloop.doctor.model.events import Event, ModelForward
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import NOWHERE, Criterion, Loader, Model, Optimizer, Thing


@dataclass(eq=False, kw_only=True)
class Measured(Event):
    """Numbers that were read off the running program (live)."""

    def at(self, event: Event) -> Self:
        """It was read off at the moment of an event."""
        self.place, self.stack, self.turns = event.place, event.stack, event.turns
        return self


# ---------------------------------------------------------------------- losses


@dataclass(eq=False, kw_only=True)
class ConstantTerm(Measured):
    """A gradient without a graph is a term of the loss that `backward` is called on."""

    gradient: Location
    """Where it was taken."""


@dataclass(eq=False, kw_only=True)
class GradientsLost(Measured):
    """Gradients that were there after `backward` were gone at several steps in a row."""

    optimizer: Optimizer


@dataclass(eq=False, kw_only=True)
class LossInputRange(Measured):
    """The origin of a loss's inputs, if the graph does not show how they were computed."""

    criterion: Criterion
    low: float
    high: float
    count: int
    """Values."""
    sums_to_one: bool
    """Over the classes, within rounding."""
    classes: int


@dataclass(eq=False, kw_only=True)
class InitialLoss(Measured):
    """The first cross-entropy of a model that was not trained before."""

    loss: float
    classes: int


@dataclass(eq=False, kw_only=True)
class LabelRuns(Measured):
    """The labels of a batch that a classifier is trained on."""

    runs: list[tuple[float, int]]
    """Label, and how often it came in a row; empty where the classes are mixed."""


@dataclass(eq=False, kw_only=True)
class PredictionSpread(Measured):
    """A model gave the same output for all samples of many batches, or no longer does."""

    model: Model
    varies: bool
    updates: int
    spelled: str
    """How the call names the model."""


# ---------------------------------------------------------------------- data


@dataclass(eq=False, kw_only=True)
class NonFiniteBatch(Measured):
    """NaN or infinity of a batch has reached a layer or a loss."""

    loader: Loader | None
    rows: list[int]
    """The first of them."""
    samples: list[Any]
    """Their numbers in the data set, where these are known."""
    count: int
    """Rows in all."""
    kind: str
    """`NaN` or `infinity`."""
    reaches: str = ""
    """Class of the layer or loss."""
    reached_at: Location = NOWHERE


@dataclass(eq=False, kw_only=True)
class FirstLayerInput(Measured):
    """How large the inputs are that reach the first layer of a model."""

    model: Model
    size: float
    """Root mean square."""
    largest: float
    layer: str
    """Its class."""


@dataclass(eq=False, kw_only=True)
class TargetColumns(Measured):
    """The columns of a table that determine the target, each by itself."""

    loader: Loader | None
    """None for rows that the program gives the model itself."""
    model: Model | None
    rows: int
    columns: list[int]
    width: int
    """Columns in all."""


@dataclass(eq=False, kw_only=True)
class LoaderOverlap(Measured):
    """Two loaders have samples in common."""

    loader: Loader
    size: int
    other: Loader
    other_size: int
    common: int
    by_content: bool = False
    """Their rows are equal; else they are the same entries of the same data."""
    written: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """The names in the expressions that make the two."""


@dataclass(eq=False, kw_only=True)
class WeightsKept(Measured):
    """An optimizer is made for models that a former one has trained, with the weights as they
    are."""

    models: list[Model]


@dataclass(eq=False, kw_only=True)
class LoadedPartReplaced(Measured):
    """A module of a model whose weights were loaded was replaced by a new one."""

    model: Model


# ---------------------------------------------------------------------- parameters


@dataclass(eq=False, kw_only=True)
class StrayParameter(Measured):
    """A parameter gets gradients and does not change."""

    optimizer: Optimizer | None = None
    """The one that steps."""
    parameter: str = ""
    """Its name in the model, after the model's own."""
    model: str = ""
    """The model's class."""
    named: bool = False
    """The model has a name."""
    updates: int = 0
    numel: int = 0


@dataclass(eq=False, kw_only=True)
class StaleParameter(StrayParameter):
    """It replaced a parameter of the optimizer."""

    rebuilt: bool = False
    """Its whole model was made again."""


@dataclass(eq=False, kw_only=True)
class HiddenParameter(StrayParameter):
    """Its layer is in a plain container of a module."""

    attribute: str
    container: str
    """`list`, `tuple` or `dict`."""
    holder: str
    """The module's class."""
    made: Location


@dataclass(eq=False, kw_only=True)
class UnheldParameter(StrayParameter):
    """No optimizer has ever had it."""

    made: Location


@dataclass(eq=False, kw_only=True)
class StrayResolved(Measured):
    """The finding at `place` is refuted: an optimizer took the parameter, or it changed."""


@dataclass(eq=False, kw_only=True)
class ParameterMeasured(Measured):
    """One parameter of an optimizer after many updates, made at `place`."""

    optimizer: Optimizer
    parameter: str
    updates: int
    is_idle: bool
    """False: it was, and is not any more."""


@dataclass(eq=False, kw_only=True)
class ParameterGradient(ParameterMeasured):
    """Idle: no gradient has reached it."""


@dataclass(eq=False, kw_only=True)
class ParameterMoves(ParameterMeasured):
    """Idle: steps with a gradient have not changed it."""

    spacing: float = 0.0
    """Between the numbers of its size, where this is why: the updates round away."""


@dataclass(eq=False, kw_only=True)
class UpdateRounding(Measured):
    """How many elements of an update in half precision were rounded away."""

    optimizer: Optimizer
    dtype: str
    asked: int
    """Elements with an update other than 0."""
    lost: int
    lr: float


@dataclass(eq=False, kw_only=True)
class MuonOfEmbedding(Measured):
    """Muon updates matrices of no hidden layer."""

    optimizer: Optimizer
    parameters: list[str]
    held: str
    """`the embedding`, `the output layer`, or both."""


@dataclass(eq=False, kw_only=True)
class FrozenLayersRan(Measured):
    """Batch norm or dropout ran in train mode, inside of what learns nothing."""

    forward: ModelForward
    part: Model
    """The outermost module around them that is frozen; or the one that was called, under
    `no_grad`."""
    layers: list[Model]
    frozen: bool
    written: bool
    """Its weights have changed since it was first seen."""


@dataclass(eq=False, kw_only=True)
class LayerMadeAgain(Measured):
    """A layer is created again in several updates, and no optimizer holds it."""

    kind: str


@dataclass(eq=False, kw_only=True)
class RanksDiffer(Measured):
    """Parameters that should be equal on two ranks are not."""

    subject: Thing
    """A model or an optimizer."""
    rank: int
    """The other one, beside rank 0."""
    updates: int
    parameter: str
    by: float
    """Largest relative difference."""
    count: int
    of: int
    """Parameters that differ, and those that were compared."""
    same: int | None
    """Updates after which they were equal; None if they never were."""
    rates: tuple[list[float], list[float]]
    """Learning rates of both."""
    wrapped: bool


# ---------------------------------------------------------------------- memory


MANY_GRAPHS = 1_000
"""Updates whose losses keep nodes that nobody notices: some megabytes."""


@dataclass(eq=False, kw_only=True)
class GraphsRetained(Measured):
    """Tensors with the graphs of several updates in a row live on, and their owner grows."""

    holder: str
    how: str
    """`sum`, `append` or `store`."""
    stays: bool = False
    """The first of them has outlived its epoch, or `MANY_GRAPHS` updates."""


@dataclass(eq=False, kw_only=True)
class MemoryGrowth(Measured):
    """A container that makes up most of a growing memory."""

    holder: str
    kind: str
    """Its class."""
    count: int
    """Tensors and arrays in it."""
    held: int
    grown: int
    """Bytes: of the container, and of the memory since update `since`."""
    since: int
    update: int
    on_device: bool


# ---------------------------------------------------------------------- the course of training


class UpdateSizes(NamedTuple):
    """The updates that were measured, of one optimizer."""

    most: float
    usual: float
    low: float
    """Size of an update relative to the weights: largest, median and lower quartile."""
    gradient: float
    """The largest, relative to the weights."""
    faded: float | None
    """The first layer's gradient relative to the last one's."""
    first_rate: float
    most_rate: float
    """Learning rates."""
    looked: int
    """Updates whose sizes were measured."""


@dataclass(eq=False, kw_only=True)
class TrainingCourse(Measured):
    """How far training has come."""

    optimizer: Optimizer | None
    first: float
    latest: float
    """Mean losses of the first and of the latest updates."""
    error: float
    """Standard error of their difference."""
    guess: float
    """The loss of the best constant prediction."""
    spread: float | None
    """Of the predictions of one batch."""
    update: int
    kind: str
    """The loss function's class, if there is only one."""
    sizes: UpdateSizes


@dataclass(eq=False, kw_only=True)
class GradientJump(Measured):
    """A spike of the gradient norm, and the losses before and after."""

    optimizer: Optimizer | None = None
    rate: float | None = None
    """The learning rate."""
    update: int
    norm: float
    level: float
    over: int
    """Median of the norms before, and of how many updates."""
    weights: float
    """Norm of the parameters after, relative to that before."""
    before: float
    ceiling: float
    """Median and largest of the losses before."""
    begin: float
    """The loss in the first updates of all."""
    late: float
    peak: float
    within: int
    """The latest losses; the highest, and after how many updates it came."""
    above: float
    """Share of the first losses after it that exceed the ceiling."""
    followed: int
    """Updates since."""


@dataclass(eq=False, kw_only=True)
class ValidationCourse(Measured):
    """The evaluations of one place."""

    kind: str
    """The loss function's class."""
    count: int
    first: float
    best: float
    best_update: int
    best_number: int
    best_training: float
    """Training loss at the best evaluation."""
    lowest: float
    last: float
    """Means of some evaluations in a row: the lowest, and that of the latest."""
    last_update: int
    training: float
    """Training loss of the latest."""
    low: float
    """The lowest of the latest evaluations."""
    noise: float
    stops: bool
    """The loop that trains may be left early."""


@dataclass(eq=False, kw_only=True)
class NonFiniteOrigin(Measured):
    """A loss or gradients that are not finite, and where that began."""

    what: Literal["loss", "gradient"] = "loss"
    kind: str
    """`NaN` or `inf`."""
    cause: str = ""
    """`operation`, `parameter`, `buffer`, `input`, `constant`, `backward`; empty if not found."""
    update: int = 0
    outcome: str = ""
    """`stepped`, `again`, `ended`; `left out` and `harmless` if nothing came of it."""
    bundle: str | None = None
    """The folder that `trueloop replay` takes."""
    data_rule: bool = False
    """The rule about data that are not finite is active, too."""
    line: Location | None = None
    call: Location | None = None
    model: str = ""
    module: str = ""
    module_kind: str = ""
    in_module: bool = False
    operation: str = ""
    """Of aten, with its overload."""
    node: str = ""
    """Of autograd."""
    detail: str = ""
    """The property of the arguments that causes it."""
    makes: str = ""
    """The first result: `NaN` or `inf`."""
    inputs_bad: list[str] = field(default_factory=list)
    name: str = ""
    """Of a parameter, buffer or argument."""
    rows: list[int] = field(default_factory=list)
    rows_count: int = 0
    samples: list[Any] = field(default_factory=list)
    gradients: list[str] = field(default_factory=list)
    count: int = 0
    """The first parameters whose gradients are not finite, and how many there are."""
    loose: bool = False
    """Only the node is known."""
    explosion: bool = False
    recent: list[float] = field(default_factory=list)
    """The losses before."""
    lr: float | None = None
    norm: float | None = None
    """The latest gradient norm."""
    largest: str = ""
    largest_size: float = 0.0
    """The largest weight."""
