"""Events about a program's own values: scores, counts and coefficients, lists of layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trueloop.doctor.model.events import Event
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import Value
from trueloop.doctor.model.measurements import Measured
from trueloop.doctor.model.things import Dataset, Loader, Model, Tensor


@dataclass(eq=False, kw_only=True)
class DecayedAgain(Event):
    """A variable was multiplied by a function of a loop's count, and so was its last value (in
    source)."""

    variable: str
    """How it is written: `self.epsilon`."""
    count: str
    """How the count is written: `epoch`."""


@dataclass(eq=False, kw_only=True)
class KeysCounted(Measured):
    """The length of a batch that is a dict is used as its number of samples."""

    batch: str
    """Its name."""
    keys: int | None = None
    samples: int | None = None
    """The two numbers, which differ (live)."""


@dataclass(eq=False, kw_only=True)
class TransformSet(Event):
    """`part.dataset.transform = value`: the transform of a data set is set through a part of it (in
    source)."""

    dataset: Dataset
    part: str
    """How the part is written: `train_set`."""
    value: Value


@dataclass(eq=False, kw_only=True)
class MeansOverSamples(Measured):
    """A sum of batch means is divided by the number of samples."""

    loader: Loader


@dataclass(eq=False, kw_only=True)
class ColumnsPicked(Event):
    """Of each row of a tensor, the entry in one column was picked: `p.gather(1, y[:, None])`,
    `p[torch.arange(len(y)), y]` (in source)."""

    source: Tensor
    columns: Tensor


@dataclass(eq=False, kw_only=True)
class ComparedWithHalf(Event):
    """A tensor was compared with 0.5: `outputs > 0.5` (in source)."""

    tensor: Tensor
    how: Literal["above", "below"]


@dataclass(eq=False, kw_only=True)
class OrderedSlice(Event):
    """The next run of labels that are in order was taken: `y[i : i + size]` (in source)."""

    part: Tensor
    ordered: Location
    """Where they were put in order."""


@dataclass(eq=False, kw_only=True)
class LayerRepeated(Event):
    """A list got one layer in several places (in source)."""

    layer: Model


@dataclass(eq=False, kw_only=True)
class LayerInPlaces(Measured):
    """A container has one layer in several places, and an optimizer trains it (live)."""

    kind: str
    """The layer's class."""
    container: str
    """The container's class."""
    places: int
    numel: int
    """Parameters of the layer that are trained."""
