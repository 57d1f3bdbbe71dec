"""The events around gradients in one run, recorded once for all rules that look back."""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Backward,
    Clip,
    EscapedToUnknown,
    Event,
    GradEdited,
    GradRead,
    ManualUpdate,
    ModelForward,
    OptimizerStep,
    SamplingGap,
    ScalerUpdate,
    Unscale,
    ZeroGrad,
)
from trueloop.doctor.model.things import Optimizer

KEPT = 4_000
"""Events that are remembered: a watched run has no end."""
FAR = 600
"""Events that are looked back over for the beginning of a window."""
KINDS: tuple[type[Event], ...] = (
    Backward, Clip, EscapedToUnknown, GradEdited, GradRead, ManualUpdate, ModelForward,
    OptimizerStep, SamplingGap, ScalerUpdate, Unscale, ZeroGrad,
)  # fmt: skip
_SinceStep = tuple[OptimizerStep | None, list[Event]]


class Timeline:
    """The events of `KINDS`, oldest first; each is added once the rules have seen it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.optimizers: list[Optimizer] = []
        """Those that have stepped or cleared gradients, in the order of their first."""
        self._since: dict[Optimizer, _SinceStep] = {}
        self._stepped: dict[Optimizer, int] = {}
        """The place of each one's latest step among all events that were ever added."""
        self._dropped = 0

    def add(self, event: Event) -> None:
        self._since.clear()
        if isinstance(event, SamplingGap):
            self._dropped += len(self.events)
            self.events.clear()
            return
        if isinstance(event, ModelForward) and not event.grad:
            return
        acts = event.optimizer if isinstance(event, OptimizerStep) else None
        if isinstance(event, ZeroGrad) and isinstance(event.target, Optimizer):
            acts = event.target
        if acts is not None and acts not in self.optimizers:
            self.optimizers.append(acts)
        if isinstance(event, OptimizerStep):
            self._stepped[event.optimizer] = self.count
        self.events.append(event)
        if len(self.events) > 2 * KEPT:
            self._dropped += len(self.events) - KEPT
            del self.events[:-KEPT]

    @property
    def count(self) -> int:
        """The events that were ever added."""
        return self._dropped + len(self.events)

    def since_step(self, optimizer: Optimizer) -> _SinceStep:
        """The optimizer's latest step, and what happened since, oldest first."""
        found = self._since.get(optimizer)
        if found is None:
            position = self._stepped.get(optimizer, -1) - self._dropped
            first = max(0, len(self.events) - FAR)
            step = self.events[position] if position >= first else None
            assert step is None or isinstance(step, OptimizerStep)
            later = self.events[position + 1 if step is not None else first :]
            found = self._since[optimizer] = step, later
        return found
