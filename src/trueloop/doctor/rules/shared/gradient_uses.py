"""Whether the gradients that one backward leaves are ever applied.

An optimizer may step several times in an iteration, with a backward each: the losses of a GAN and
their regularizers. Each backward is then followed on its own to what comes of its gradients.
"""

from __future__ import annotations

from itertools import islice
from typing import Literal

from trueloop.doctor.model.events import (
    Backward,
    Event,
    GradEdited,
    GradRead,
    ManualUpdate,
    OptimizerStep,
    ZeroGrad,
)
from trueloop.doctor.model.things import Optimizer, Tensor
from trueloop.doctor.rules.shared.step_order import (
    clears,
    disjoint,
    feeds,
    has_parameters_of,
    is_whole,
    may_change_gradients,
)

Use = Literal["applied", "cleared", "cleared at times", "pending", "unknown"]
"""`applied`: or used in a different way. `pending`: the run ends first."""


def use_of(backward: Backward, events: list[Event], at: int, optimizers: list[Optimizer]) -> Use:
    """The fate of the gradients that a backward, event number `at`, leaves for the parameters of
    these optimizers."""
    uses = {
        _use_by(backward, events, at, each)
        for each in optimizers
        if feeds(backward, each) is not False
    }
    order: tuple[Use, ...] = ("unknown", "applied", "pending", "cleared at times", "cleared")
    return next((each for each in order if each in uses), "unknown")


def _use_by(backward: Backward, events: list[Event], at: int, optimizer: Optimizer) -> Use:
    for event in islice(events, at + 1, None):
        if isinstance(event, ZeroGrad):
            cleared = clears(event, optimizer)
            if cleared and is_whole(event):
                always = event.guards <= backward.guards
                always = always and {*event.windows} <= {*backward.windows}
                return "cleared" if always else "cleared at times"
            if cleared is not False:
                return "unknown"
        elif _uses(event, optimizer):
            return "applied"
    return "pending"


def _uses(event: Event, optimizer: Optimizer) -> bool:
    if isinstance(event, OptimizerStep):
        return not disjoint(event.optimizer, optimizer)
    if isinstance(event, GradRead):
        return not event.logged  # of an input, too: an attack
    if isinstance(event, GradEdited):
        return True
    return may_change_gradients(event, optimizer) or by_hand(event, optimizer)


def by_hand(event: Event, optimizer: Optimizer) -> bool:
    """Gradients are read, or parameters are changed, without the optimizer."""
    if not isinstance(event, (GradRead, ManualUpdate)):
        return False
    if isinstance(event, GradRead) and event.logged:
        return False
    target = event.target
    if isinstance(target, Tensor) and target.role != "parameter":
        is_input = bool(target.role) or target.requires_grad
        return not is_input  # the gradient of an input: an attack, a saliency map
    if not isinstance(target, (Tensor, Optimizer)) or not target.models or not optimizer.models:
        return True
    return any(has_parameters_of(optimizer, model) for model in target.models)
