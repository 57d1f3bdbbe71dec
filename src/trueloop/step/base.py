"""The parts of a step: for the files that do a part of its work, which `Step` itself imports."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from trueloop import _options, reprs
from trueloop.errors import ConfigError
from trueloop.records import StepRecord
from trueloop.step.accumulate import Gradients, MicroBatchWindow
from trueloop.step.averaging import AveragedWeights
from trueloop.step.bound_schedules import BoundSchedules
from trueloop.step.modes import Modes
from trueloop.step.nonfinite import NonFinitePolicy
from trueloop.step.outliers import NormHistory, Outliers
from trueloop.step.parallel import LossFn, Parallel
from trueloop.step.precision import Precision
from trueloop.step.schedule import Plan
from trueloop.step.unfreezing import Unfreezing

OnOutputs = Callable[[Any, Any], object]


class StepBase:
    """The parts of a step and what can be read of it. See `Step`."""

    model: nn.Module
    optimizers: tuple[Optimizer, ...]
    """All of them, in their order."""
    loss_fn: LossFn
    clip_norm: float | None
    clip_value: float | None
    device: torch.device
    """That of the model's parameters: losses and norms are there."""
    precision: Precision
    outliers: Outliers | None
    """The policy; None for none."""
    epoch: int = 0
    """Epochs ended."""
    batch: int = 0
    """Micro-batches taken in the current epoch."""
    updates: int = 0
    """Updates applied."""
    skipped: int = 0
    """Updates skipped because their gradient was not finite, or an outlier."""
    resumed: bool = False
    """The position comes from a loaded state or an interrupted `fit`: the next `fit` resumes there,
    and not at the first batch of the epoch."""
    on_outputs: OnOutputs | None = None
    """Called as `on_outputs(outputs, targets)`, both detached, after each backward, with what
    `loss_fn` returned in its `LossOutput`: for example the `update` of a metric."""

    stop_reason: str | None = None
    """The argument of `stop`; None without a call. A loop of your own can end then; `fit` begins
    with None."""

    _plan: Plan | None = None
    _parallel: Parallel
    _gradients: Gradients
    _window: MicroBatchWindow
    _forward: nn.Module
    _compiled: Any
    """A `CompiledStep`, which takes batches before the step itself; None without one."""
    _nonfinite: NonFinitePolicy
    _norms: NormHistory
    _schedules: BoundSchedules
    _groups: list[tuple[str, Optimizer]]
    _modes: Modes
    _unfreezing: Unfreezing | None = None
    _average: AveragedWeights | None = None
    """The same as `_modes`, if the weights are averaged."""
    _warned: set[str]

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer.

        Raises:
            ConfigError: the step has several: write `step.optimizers`.
        """
        if len(self.optimizers) > 1:
            raise ConfigError(
                f"the step has {len(self.optimizers)} optimizers: write step.optimizers, or one of "
                "them such as step.optimizers[0]"
            )
        return self.optimizers[0]

    def stop(self, reason: str = "step.stop() was called") -> None:
        """End the `fit` that trains with this step, from a sink or from any thread.

        It ends after the current update, evaluated and saved; a resumed run is the one that was
        never stopped. On many ranks a call on one of them ends the run on all. A call while no
        `fit` is running has no effect on the next one.

        Args:
            reason: for `History.reason`.

        Raises:
            ConfigError: `reason` is not a text.
        """
        self.stop_reason = _options.text("reason", reason, "the loss is low enough")

    def evaluating(self) -> AbstractContextManager[None]:
        """Return a context in which `model` has the weights to use.

        They are those of `average`, or of a schedule-free optimizer in eval mode. After it the
        training continues from its own, bit by bit. Without either, nothing changes.
        `fit` evaluates so.
        """
        return self._modes.evaluating()

    def __repr__(self) -> str:
        options = (("clip_norm", self.clip_norm), ("clip_value", self.clip_value))
        return reprs.described(
            self,
            type(self.model).__name__,
            " + ".join(type(optimizer).__name__ for optimizer in self.optimizers),
            self.precision.name,
            f"accumulate={self._window.size}" if self._window.size > 1 else None,
            *(f"{name}={value:g}" for name, value in options if value is not None),
            None if self._average is None else repr(self._average.average),
            str(self.device),
            f"{self.updates:,} updates",
        )

    @property
    def needs_update_bn(self) -> bool:
        """Whether SWA has averaged the weights of a model with batch norm since `update_bn`."""
        return self._average is not None and self._average.needs_bn

    @property
    def updates_bn(self) -> bool:
        """Whether `needs_update_bn` may become true: SWA of a model with batch norm."""
        return self._average is not None and self._average.updates_bn

    def update_bn(self, batches: Iterable[Any]) -> None:
        """Compute the batch norm statistics of the averaged weights, before they are evaluated.

        Each is the mean over the batches, as torch's `swa_utils.update_bn` has it; dropout is off.
        `fit` calls it where `needs_update_bn`.

        Args:
            batches: of the training data, as for the step; on several ranks each has its own.

        Raises:
            ConfigError: the step has no `average`, or the model no batch norm in train mode.
            DataError: `batches` is empty.
        """
        if self._average is None:
            raise ConfigError(
                "the step averages no weights, so batch norm has its statistics already: leave out "
                "update_bn, or make the step with average=SWA()"
            )
        self._average.update_bn(self.loss_fn, self.precision, batches)

    def eval_weights(self) -> None:
        """As `evaluating`, until the next call of the step: `fit` ends with it."""
        self._modes.eval()

    @property
    def accumulate(self) -> int:
        """Micro-batches per update."""
        return self._window.size

    @property
    def nonfinite(self) -> str:
        """The policy for a gradient that is not finite: `stop` or `skip`."""
        return self._nonfinite.policy

    @property
    def monitor(self) -> str | None:
        """The score that a metric schedule watches; None for any other. Of several the first."""
        return next(iter(self.monitors), None)

    @property
    def monitors(self) -> tuple[str, ...]:
        """The scores that the optimizers' metric schedules watch, each once."""
        return self._schedules.monitors

    def _update(self, batch: int) -> StepRecord:
        """Close the window."""
        raise NotImplementedError

    def _record(
        self, batch: int, *, lrs: dict[str, Any] | None = None, **outcome: Any
    ) -> StepRecord:
        """The outcome of a call."""
        raise NotImplementedError

    def _warn_once(self, kind: str, what: str, stacklevel: int = 4) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(what, UserWarning, stacklevel=stacklevel)
