"""Early stopping: the end of a run whose score no longer improves."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from trueloop import _options
from trueloop.records import EvalRecord, is_better, loss_beside, monitored
from trueloop.step.schedule import resolve_mode


@dataclass
class EarlyStopping:
    """Stops a run whose score no longer improves, and brings the best weights back at its end.

    Args:
        monitor: the score to watch: `val_loss`, `train_loss`, `val_accuracy`, …
        patience: epochs without a better score before the run ends, 1 or more.
        min_delta: how much better counts as better, in the score's own unit, 0 or above.
        mode: `min`, `max`, or `auto`: by the score's name (losses and errors should fall, accuracy
            and its kind should rise).

    Attributes:
        best: the best score so far; None before the first.
        bar: what the next better score has to beat by `min_delta`.
        stale: epochs since the best.
        weights: a copy of the model's state at the best score.

    Raises:
        ConfigError: a value that cannot work, or a score whose direction is not known.
    """

    monitor: str = "val_loss"
    patience: int = 10
    min_delta: float = 0.0
    mode: str = "auto"
    best: float | None = field(default=None, init=False)
    bar: float | None = field(default=None, init=False)
    stale: int = field(default=0, init=False)
    weights: dict[str, Any] | None = field(default=None, init=False, repr=False)
    _loss: float = field(default=math.nan, init=False, repr=False)
    """The loss beside the best, which decides between equals."""

    def __post_init__(self) -> None:
        _options.whole("patience", self.patience, 1, 10)
        _options.not_negative("min_delta", self.min_delta)
        self.mode = resolve_mode(self.monitor, self.mode)

    def reset(self) -> None:
        """Forget the run that it has watched; `fit` begins with this."""
        self.best, self.bar, self.stale, self.weights = None, None, 0, None
        self._loss = math.nan

    @property
    def is_over(self) -> bool:
        """Whether the score has not improved for `patience` epochs."""
        return self.stale >= self.patience

    def __call__(self, record: EvalRecord, model: nn.Module) -> bool:
        """Take in an epoch's scores; copy the model's state if they are the best so far.

        Args:
            record: of the epoch, with the score `monitor`.
            model: the module that was evaluated.

        Returns:
            Whether the run should stop now.

        Raises:
            ConfigError: the record does not have the score.
        """
        value = monitored(record.scores, self.monitor)
        # A gain below `min_delta` is none for the patience, but its weights are the better ones.
        loss = loss_beside(record.scores, self.monitor)
        if is_better(value, self.best, self.mode, loss=loss, best_loss=self._loss):
            self.best, self._loss = value, loss
            self.weights = {name: _copy(part) for name, part in model.state_dict().items()}
        if is_better(value, self.bar, self.mode, self.min_delta):
            self.bar, self.stale = value, 0
        else:
            self.stale += 1
        return self.is_over

    def bring_back(self, model: nn.Module) -> None:
        """Load the best weights into the model, if there are any.

        Args:
            model: the module that was trained.
        """
        if self.weights is not None:
            model.load_state_dict(self.weights)

    def state_dict(self) -> dict[str, Any]:
        """Return what the next call depends on: plain data and the best weights."""
        names = ("best", "bar", "stale", "weights")
        return {name: getattr(self, name) for name in names} | {"loss": self._loss}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned.

        Args:
            state: what it returned.
        """
        self.best, self.bar, self._loss = state["best"], state["bar"], state.get("loss", math.nan)
        self.stale, self.weights = state["stale"], state["weights"]


def _copy(part: Any) -> Any:
    """A private copy of an entry of a state dict: a tensor, or a module's extra state."""
    return part.detach().clone() if isinstance(part, Tensor) else copy.deepcopy(part)
