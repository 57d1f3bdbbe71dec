"""One thread of the watched program, and the rules that hear of what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from trueloop.doctor.live.frames.loop_tracker import ThreadLoops
from trueloop.doctor.model.events import Event
from trueloop.doctor.model.findings import Finding
from trueloop.doctor.rules.base import Rule, RuleRunner

if TYPE_CHECKING:
    from torch import nn
    from torch.amp import GradScaler

    from trueloop.doctor.model.things import Tensor


class LiveRuleRunner(RuleRunner):
    """Rules that the program and the other rules must not suffer from: one that fails is named."""

    def __init__(self, rules: list[type[Rule]], failed: Callable[[Exception], None]) -> None:
        super().__init__(rules)
        self._failed = failed

    def findings(self) -> list[Finding]:
        try:
            return super().findings()
        except Exception as error:
            self._failed(error)
            return []

    def see(self, event: Event) -> None:
        kind = type(event)
        for handler in self._handlers.get(kind) or self.handlers_of(kind):
            try:
                handler(event)
            except Exception as error:  # whatever it is, the program continues
                self._failed(error)


class Track:
    """One thread of the program: where it is, and the rules that watch it."""

    def __init__(self, rules: list[type[Rule]], failed: Callable[[Exception], None]) -> None:
        self.turns = ThreadLoops()
        self.runner = LiveRuleRunner(rules, failed)
        self.serial = 0
        self.depth = 0
        """Of calls of modules, while it is sampled."""
        self.inside: list[nn.Module] = []
        """The modules whose calls are open, outermost first, while it is sampled."""
        self.switching = False
        """Inside of `train()`, which calls itself for each part."""
        self.quiet = False
        """Inside of torch's own code that does what it does for itself."""
        self.scaler: GradScaler | None = None
        """Inside of its `step`."""
        self.scaler_stepped = False
        self.scale_asked: float | None = None
        """The scale of a scaler that the program has last asked for."""
        self.batch: tuple[Tensor, ...] = ()
        """The parts of the latest batch of a loader."""
        self.indices: Sequence[Any] = ()
        """Its samples in the data set, where they are known."""
        self.iterator: Any = None
        """The loader's iterator that gives a batch now: the loader itself may be gone."""
