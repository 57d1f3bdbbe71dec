"""Events about what an optimizer holds, and its learning rates."""

from __future__ import annotations

from dataclasses import dataclass

from trueloop.doctor.model.events import Event
from trueloop.doctor.model.measurements import Measured
from trueloop.doctor.model.things import Model, Optimizer


@dataclass(eq=False, kw_only=True)
class GroupAdded(Event):
    """An optimizer got more parameters: `add_param_group(...)`, or a group's list set again (in
    source)."""

    optimizer: Optimizer
    models: tuple[Model, ...] = ()
    """The modules that they are of; empty if they are not known."""


@dataclass(eq=False, kw_only=True)
class RateSet(Measured):
    """The program itself sets a learning rate: `group["lr"] = rate`. Live: a learning rate changed
    between two steps of the optimizer, by a schedule or by the program."""

    optimizer: Optimizer
    rested: bool = False
    """Earlier, two steps in a row had the same rates (live)."""
    at_first: bool = False
    """Only in the first iterations: `if step < warmup` (in source)."""
