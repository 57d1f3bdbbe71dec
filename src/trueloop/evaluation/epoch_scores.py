"""The scores of an evaluation within `fit`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from trueloop import metrics as metric_sets
from trueloop.errors import ConfigError, RunError, UserError
from trueloop.evaluation.means import Means
from trueloop.evaluation.scores import (
    NeedsGradientsError,
    check_outputs,
    joined,
    scored,
)
from trueloop.feed import Feed
from trueloop.metrics._base import check_reductions, load_state_over_ranks, state_over_ranks
from trueloop.records import EvalRecord
from trueloop.step import Step
from trueloop.step.open_windows import warn_if_accumulating


class EpochScores:
    """The scores of one evaluation: the mean training loss since the last one, its parts, and the
    metrics of both data sets.

    The training means (`Means`) are weighted by samples and added up without a wait.
    """

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
        self._means = Means()
        self.add = self._means.add
        """`add(record)` takes in an update, without reading its tensors."""
        self.reset()

    def reset(self) -> None:
        """Begin what the next evaluation is of."""
        self._means.reset()
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

    def evaluate(self, epoch: int, should_stop: Callable[[], bool] | None = None) -> EvalRecord:
        """The scores within `epoch`, most often at its end: of all ranks, on each.

        `should_stop` is asked after each batch of val; where it says yes, `EvaluationStopped` is
        raised, and the whole can be asked for again.
        """
        step, meter = self.step, self._train_metrics
        measured = {}
        if meter is not None:
            with metric_sets.over_ranks(meter):
                measured = meter.compute()
        found = joined(self._means.numbers(), measured)
        scores = {f"train_{name}": value for name, value in found.items()}
        if self.val is None:
            return EvalRecord(scores, 0, epoch, step.updates)
        val = self._on_val(self.val, should_stop)
        scores |= {f"val_{name}": value for name, value in val.scores.items()}
        return EvalRecord(scores, val.samples, epoch, step.updates, val.seconds, val.details)

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
        """Raise `ConfigError` if a saved run could not be resumed with its training metrics."""
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
            **self._means.state_dict(),
            "metrics": None if meter is None else state_over_ranks(meter),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.reset()
        self._means.load_state_dict(state, self.step.device)
        meter = self._train_metrics
        if meter is not None and state["metrics"] is not None:
            try:
                load_state_over_ranks(meter, state["metrics"])
            except UserError:
                raise
            except Exception as error:  # a set of the user's own, or of other metrics
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise RunError(
                    f"train_metrics do not accept the state in the checkpoint ({reason[:120]}): "
                    "write the same train_metrics as before"
                ) from error
