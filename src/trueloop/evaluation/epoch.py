"""The scores of a training epoch."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from trueloop import metrics as metric_sets
from trueloop.errors import ConfigError, RunError, UserError
from trueloop.evaluation.scores import (
    NeedsGradientsError,
    check_outputs,
    joined,
    scored,
)
from trueloop.feed import Feed
from trueloop.metrics._base import check_reductions, load_state_over_ranks, state_over_ranks
from trueloop.records import EvalRecord, StepRecord
from trueloop.step import Step
from trueloop.step.step import warn_if_accumulating


class EpochScores:
    """An epoch's scores: the mean training loss, its parts, the metrics of both data sets.

    The training means are weighted by samples and added up without a wait: updates are kept apart
    until there are `_FOLD` of them, then added up on their device. A state taken in a long epoch
    does not grow with it, and no sum depends on when it is taken.
    """

    _FOLD = 256

    def __init__(
        self, step: Step, val: Feed | None, metrics: Any, train_metrics: Any, gradients: bool
    ) -> None:
        self.step = step
        self.val = val
        self.metrics = metrics
        self._gradients = gradients
        self._train_metrics = metric_sets.wrap(train_metrics)
        for meter in (metric_sets.wrap(metrics), self._train_metrics):
            if meter is not None:
                check_reductions(meter)
        if val is not None:
            val.check_whole_batches()
        self.reset()

    def reset(self) -> None:
        """Begin an epoch."""
        self._updates: list[tuple[dict[str, Tensor], int]] = []
        self._sums: dict[str, tuple[Tensor, int]] = {}
        if self._train_metrics is not None:
            self._train_metrics.reset()

    @contextmanager
    def observed(self) -> Iterator[None]:
        """Within it, the training metrics see the outputs of each micro-batch."""
        meter, step = self._train_metrics, self.step
        if meter is None:
            yield
            return

        def update(outputs: Any, targets: Any) -> None:
            check_outputs(outputs)
            meter.update(outputs, targets)

        before, step.on_outputs = step.on_outputs, update
        meter.to(step.device)
        try:
            yield
        finally:
            step.on_outputs = before

    def add(self, record: StepRecord) -> None:
        """Take in an update, without reading its tensors."""
        self._updates.append(({"loss": record.loss, **record.parts}, record.samples))
        if len(self._updates) == self._FOLD:
            self._fold()

    def _fold(self) -> None:
        names = dict.fromkeys(name for means, _ in self._updates for name in means)
        for name in names:
            kept = [(means[name], n) for means, n in self._updates if name in means]
            values = torch.stack([value for value, _ in kept])
            wide = values if values.device.type == "mps" else values.double()
            weights = _weights([n for _, n in kept], wide)
            total, weight = self._sums.get(name, (torch.zeros_like(wide[0]), 0))
            self._sums[name] = total + (wide * weights).sum(), weight + sum(n for _, n in kept)
        self._updates = []

    def _means(self) -> dict[str, float]:
        self._fold()
        means = {name: float(total) / float(weight) for name, (total, weight) in self._sums.items()}
        return {"loss": float("nan"), **means}  # NaN before the first update

    def evaluate(self, epoch: int, should_stop: Callable[[], bool] | None = None) -> EvalRecord:
        """The scores at the end of `epoch`, or where it was cut short: of all ranks, on each.

        `should_stop` is asked after each batch of val; where it says yes, `EvaluationStopped` is
        raised, and the whole can be asked for again.
        """
        step, meter = self.step, self._train_metrics
        measured = {}
        if meter is not None:
            with metric_sets.over_ranks(meter):
                measured = meter.compute()
        scores = {f"train_{name}": value for name, value in joined(self._means(), measured).items()}
        if self.val is None:
            return EvalRecord(scores, 0, epoch, step.updates)
        found = self._on_val(self.val, should_stop)
        scores |= {f"val_{name}": value for name, value in found.scores.items()}
        return EvalRecord(scores, found.samples, epoch, step.updates, found.seconds, found.details)

    def _on_val(self, val: Feed, should_stop: Callable[[], bool] | None) -> EvalRecord:
        step = self.step
        warn_if_accumulating(step.model)
        score = functools.partial(
            scored,
            step.model,
            val,
            step.loss_fn,
            self.metrics,
            precision=step.precision.name,
            should_stop=should_stop,
        )
        if not self._gradients:
            try:
                return score()
            except NeedsGradientsError:
                self._gradients = True
                warnings.warn(
                    "the loss differentiates, so val is evaluated with gradients from here on: "
                    "write fit(..., gradients=True)",
                    UserWarning,
                    stacklevel=5,
                )
        return score(gradients=True)

    def check_resumable(self) -> None:
        """Raise `ConfigError` if a run that is saved could not go on with its training metrics."""
        meter = self._train_metrics
        if meter is not None and not meter.is_resumable:
            raise ConfigError(
                f"train_metrics={type(meter).__name__} cannot be saved in the midst of an epoch: "
                "define its state_dict() and load_state_dict(state)"
            )

    def state_dict(self) -> dict[str, Any]:
        """For `load_state_dict`, the same on every rank: all of them must call it."""
        meter = self._train_metrics
        return {
            "updates": [[means, int(n)] for means, n in self._updates],
            "sums": {name: [total, int(n)] for name, (total, n) in self._sums.items()},
            "metrics": None if meter is None else state_over_ranks(meter),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.reset()
        device = self.step.device
        self._updates = [
            ({name: value.to(device) for name, value in means.items()}, n)
            for means, n in state["updates"]
        ]
        self._sums = {name: (total.to(device), n) for name, (total, n) in state["sums"].items()}
        meter = self._train_metrics
        if meter is not None and state["metrics"] is not None:
            try:
                load_state_over_ranks(meter, state["metrics"])
            except UserError:
                raise
            except Exception as error:  # a set of the user's own, or of other metrics
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise RunError(
                    f"train_metrics do not take the state in the checkpoint ({reason[:120]}): "
                    "write the same train_metrics as before"
                ) from error


def _weights(samples: Sequence[int | Tensor], like: Tensor) -> Tensor:
    """Numbers of samples as a vector beside `like`; those of all ranks are on its device."""
    if any(isinstance(n, Tensor) for n in samples):
        return torch.stack([torch.as_tensor(n, device=like.device) for n in samples]).to(like)
    return torch.tensor(samples).to(like, non_blocking=True)
