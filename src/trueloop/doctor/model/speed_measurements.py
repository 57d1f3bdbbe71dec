"""Measurements of the time that parts of an update take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from trueloop.doctor.model.measurements import Measured
from trueloop.doctor.model.things import Loader, Model, Optimizer


class TimedUpdates(NamedTuple):
    """The updates that were timed, and the training that they are of."""

    number: int
    seconds: float
    """Of one update."""
    lasted: float
    """Seconds that the training has taken."""
    least: float
    """Seconds that it must take before anything is reported."""
    device: str


@dataclass(eq=False, kw_only=True)
class Timed(Measured):
    """Something that takes a share of each update."""

    updates: TimedUpdates
    share: float
    """Of each update, 0 to 1."""


@dataclass(eq=False, kw_only=True)
class DataWait(Timed):
    """The loader that is waited for longest."""

    loader: Loader
    batch: float
    """Seconds that one is waited for."""
    busy: float
    workers_busy: float
    """Share of that time in which the processor works: of the program, and of the workers."""
    rest: float
    """Seconds in which a batch is used up."""
    cores: int


@dataclass(eq=False, kw_only=True)
class OptimizerTime(Timed):
    """The steps of an optimizer that has a fused implementation."""

    optimizer: Optimizer
    step: float
    ratio: float | None
    """A fused step's time relative to that, where it was tried."""


@dataclass(eq=False, kw_only=True)
class GradientNorms(Timed):
    """Norms of gradients that are taken and read one by one."""

    often: float
    """Times per update."""
    count: int
    each: float
    """Seconds per update."""


@dataclass(eq=False, kw_only=True)
class DeviceRead(Timed):
    """A read of a tensor that waits for the device."""

    how: str
    """`item`, `tolist`, `__float__`, ..."""
    often: float
    """Times per update."""
    blocked: float
    """Seconds per update."""


@dataclass(eq=False, kw_only=True)
class DeviceTransfer(Timed):
    """A copy of a batch to the device."""

    how: str
    """`to` or `cuda`."""
    often: float
    """Times per update."""
    each: float
    """Seconds per update."""
    non_blocking: bool
    pinned: bool


@dataclass(eq=False, kw_only=True)
class MatrixProducts(Timed):
    """A model's matrix products in float32 at the highest precision."""

    model: Model
    part: float
    """Share of its parameters that are those of such products."""
    widest: int
    """The largest of the smaller sides."""


@dataclass(eq=False, kw_only=True)
class WorkerStarts(Measured):
    """A loader's workers are started for each pass over the data."""

    loader: Loader
    passes: int
    lasted: float
    least: float
    """Seconds, as in `TimedUpdates`."""
    each: float
    """Seconds per start."""
    share: float
    """Of the whole time."""
    changes: bool
    """Something about the loader changes between passes."""
