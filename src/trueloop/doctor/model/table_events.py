"""Events about tables of data, before a training begins (in source)."""

from __future__ import annotations

from dataclasses import dataclass

from trueloop.doctor.model.events import Event
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import OpaqueObject, Value
from trueloop.doctor.model.things import NOWHERE


@dataclass(eq=False, kw_only=True)
class SamplesSplit(Event):
    """`random_split` or `train_test_split` divided samples (in source)."""

    function: str
    data: list[Value | None]
    seeded: bool = False
    """With its own generator."""


@dataclass(eq=False, kw_only=True)
class Preprocessed(Event):
    """A preprocessor of scikit-learn was fitted or applied (in source)."""

    method: str
    preprocessor: OpaqueObject
    data: Value | None
    result: Value


@dataclass(eq=False, kw_only=True)
class Sliced(Event):
    """`data[index]`, outside of loops over batches (in source)."""

    data: Value
    index: Value
    result: Value
    chosen_at: Location = NOWHERE
    """Where the columns of `data[:, columns]` were chosen."""


@dataclass(eq=False, kw_only=True)
class ScaledByHand(Event):
    """Data was shifted or divided by its own mean, deviation or range: `(x - x.mean(0)) / x.std(0)`
    (in source)."""

    data: Value
    result: Value


@dataclass(eq=False, kw_only=True)
class SummedByGroup(Event):
    """A column was added up for each group of samples: `np.bincount(shop, weights=sales)` (in
    source)."""

    column: Value
    result: Value
