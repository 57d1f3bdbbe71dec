"""The right loss for the task, its inputs checked; and how a criterion becomes a `loss_fn`.

`Step` and `evaluate` take any `loss_fn(model, batch)` that returns a mean loss. For batches of
(inputs, targets), `supervised` makes one from a criterion: torch's own, one of `for_task`, or the
user's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from trueloop import _options
from trueloop.errors import ConfigError, LossError, UserError
from trueloop.losses import _checks, _counts, _error_hints
from trueloop.losses._criteria import (
    BinaryLoss,
    MulticlassLoss,
    MultilabelLoss,
    QuantileLoss,
    RegressionLoss,
    RobustLoss,
    TaskLoss,
)
from trueloop.losses._structured import DistillationLoss, RankingLoss, SegmentationLoss
from trueloop.losses._z_loss import z_loss
from trueloop.records import LossOutput

__all__ = [
    "TASKS",
    "BinaryLoss",
    "DistillationLoss",
    "MulticlassLoss",
    "MultilabelLoss",
    "QuantileLoss",
    "RankingLoss",
    "RegressionLoss",
    "RobustLoss",
    "SegmentationLoss",
    "Supervised",
    "TaskLoss",
    "apply_model",
    "for_task",
    "supervised",
    "z_loss",
]

TASKS: dict[str, Callable[..., TaskLoss]] = {
    "binary": BinaryLoss,
    "multiclass": MulticlassLoss,
    "multilabel": MultilabelLoss,
    "regression": RegressionLoss,
    "robust": RobustLoss,
    "quantile": QuantileLoss,
    "ranking": RankingLoss,
    "distillation": DistillationLoss,
    "segmentation": SegmentationLoss,
}


def for_task(task: str, *, classes: int | None = None, **options: Any) -> TaskLoss:
    """The loss of a task, as a module `loss(outputs, targets)` that checks its inputs.

    ================  =====================================  =====================================
    task              loss                                   options
    ================  =====================================  =====================================
    ``binary``        cross-entropy of one logit             pos_weight
    ``multiclass``    cross-entropy of C logits              class_weights, label_smoothing,
                                                             ignore_index
    ``multilabel``    binary cross-entropy of C logits       pos_weight
    ``regression``    squared or absolute error              method
    ``robust``        Huber or smooth L1                     method, delta
    ``quantile``      pinball loss of Q quantiles            quantiles
    ``ranking``       margin or logistic loss of pairs       method, margin
    ``distillation``  cross-entropy, and divergence from a   temperature, alpha
                      teacher
    ``segmentation``  Dice and cross-entropy of pixels       smooth, weights, class_weights,
                                                             ignore_index
    ================  =====================================  =====================================

    Args:
        task: a name of the first column.
        classes: how many classes the data have, checked against the model's outputs. None takes
            what the model gives.
        options: see the class of each task (`MulticlassLoss`, ...).

    Returns:
        The loss: `loss(outputs, targets)` is a scalar mean.

    Raises:
        ConfigError: an unknown task or option, or an option's value that cannot work.
        LossError: when the loss is called, if outputs and targets do not fit it.
    """
    kind = TASKS[_options.by_name("task of a loss", task, TASKS)]
    known = [name for name in inspect.signature(kind).parameters if name != "classes"]
    for name in options:
        if name not in known:
            raise ConfigError(
                f"the loss of task {task!r} has no option {name!r}: its options are "
                + ", ".join(known)
            )
    return kind(classes=classes, **options)


def apply_model(model: nn.Module, inputs: Any) -> Any:
    """The model's output for a batch's inputs.

    Args:
        model: the module.
        inputs: one tensor; a tuple or list of positional arguments; or a mapping of keyword
            arguments.

    Returns:
        What the model returns.

    Raises:
        LossError: the model's `forward` does not take these arguments.
        DataError: the inputs are one tensor, on a different device or of a different dtype than
            the model's parameters, and the model fails for it.
    """
    try:
        if isinstance(inputs, (tuple, list)):
            return model(*inputs)
        if isinstance(inputs, Mapping):
            return model(**inputs)
        return model(inputs)
    except TypeError as error:
        _error_hints.check_inputs(model, inputs, error)
        raise
    except (RuntimeError, ValueError) as error:
        if not isinstance(error, torch.OutOfMemoryError):
            _error_hints.check_tensors(model, inputs, error)
        raise


def supervised(criterion: Callable[[Any, Any], Tensor]) -> Supervised:
    """A `loss_fn(model, batch)` for batches of (inputs, targets).

    The loss is bitwise `criterion(model(inputs), targets)`. It comes with the number of elements
    that the mean is over, so that accumulated micro-batches are weighted as in their union: for
    cross-entropy the targets that are not ignored, or their class weights; for element-wise losses
    the elements; else the samples. A criterion with a different mean defines a method
    ``count(outputs, targets)`` that returns a number or a scalar tensor.

    Args:
        criterion: a module or function of (outputs, targets) that returns a mean: torch's own
            with ``reduction="mean"``, one of `for_task`, or the user's.

    Returns:
        A `loss_fn` for `Step` and `evaluate`.

    Raises:
        LossError: what is given is not a criterion, or does not take the mean; when called, if the
            batch is not a pair, or outputs and targets do not fit one of torch's own criteria (an
            error of the user's own criterion is raised unchanged).
    """
    return Supervised(criterion)


class Supervised:
    """A `loss_fn(model, batch)` for batches of (inputs, targets): see `supervised`.

    Args:
        criterion: a module or function of (outputs, targets) that returns a mean.
    """

    def __init__(self, criterion: Callable[[Any, Any], Tensor]) -> None:
        _check_criterion(criterion)
        self.criterion = criterion
        self._count = _counts.rule_for(criterion)
        self._same_shape = _counts.needs_same_shape(criterion)
        self._indexed = _counts.is_indexed(criterion)
        self._has_unchecked_targets = _counts.takes_logits_of_two(criterion)
        self._is_torchs = _error_hints.is_torchs(criterion)

    def __call__(self, model: nn.Module, batch: Any) -> LossOutput:
        """The loss of a batch, with the model's output for the metrics.

        Args:
            model: the module; see `apply_model` for how it is called.
            batch: a tuple or list of (inputs, targets).

        Returns:
            The mean loss, a scalar; what it is the mean of; outputs; and targets.

        Raises:
            LossError: the batch is not a pair, outputs and targets do not fit, or the criterion
                does not return a scalar.
            DataError: the inputs do not fit the model: see `apply_model`.
        """
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            raise _no_pair(batch)
        inputs, targets = batch
        outputs = apply_model(model, inputs)
        if self._same_shape:
            self._check_same_shape(outputs, targets)
        if self._has_unchecked_targets and isinstance(targets, Tensor):
            # As the losses of `for_task` do, on the first batch: this may wait for the device.
            _checks.unit_interval(_error_hints.name_of(self.criterion), targets)
            self._has_unchecked_targets = False
        is_wide = self._indexed and isinstance(outputs, Tensor) and outputs.ndim > 1
        if is_wide and outputs.shape[1] < 2:
            _checks.columns(_error_hints.name_of(self.criterion), outputs, None)
        try:
            loss = self.criterion(outputs, targets)
        except torch.OutOfMemoryError:
            raise
        except (TypeError, ValueError, IndexError, RuntimeError) as error:
            if not self._is_torchs or isinstance(error, UserError):
                raise
            raise _error_hints.refusal(self.criterion, outputs, targets, error) from error
        if not isinstance(loss, Tensor) or loss.ndim:
            raise _no_mean(loss)
        rule = self._count
        # No `partial`: a compiled step of torch 2.6 could not ask whether that is callable.
        count = None if rule is None else lambda: rule(outputs, targets)
        return LossOutput(loss, count, outputs, targets)

    def _check_same_shape(self, outputs: Any, targets: Any) -> None:
        if isinstance(outputs, Tensor) and isinstance(targets, Tensor):
            if outputs.shape == targets.shape:
                return
            _checks.same_shape(_error_hints.name_of(self.criterion), outputs, targets)
        _checks.are_tensors(_error_hints.name_of(self.criterion), outputs, targets)

    def __repr__(self) -> str:
        return f"supervised({self.criterion!r})"


def _check_criterion(criterion: Any) -> None:
    if isinstance(criterion, type):
        raise LossError(
            f"supervised was given the class {criterion.__name__}: write {criterion.__name__}()"
        )
    if not callable(criterion):
        raise LossError(
            f"supervised needs a loss of (outputs, targets), not {_options.shown(criterion)}: "
            "write e.g. supervised(nn.CrossEntropyLoss())"
        )
    if isinstance(criterion, Supervised) or _error_hints.has_signature_of_loss_fn(criterion):
        raise LossError(
            "supervised was given a loss_fn(model, batch) already: give that to Step "
            "directly, without supervised"
        )
    if not _options.takes(criterion, 2):
        raise LossError(
            f"supervised calls its criterion with (outputs, targets), and "
            f"{_error_hints.name_of(criterion)} does not take that: write a loss_fn(model, batch) "
            "that calls it and returns the loss"
        )
    options = criterion.keywords if isinstance(criterion, partial) else _attributes(criterion)
    reduction = options.get("reduction", "mean")
    # "batchmean" of KLDivLoss is the mean over samples.
    if isinstance(reduction, str) and reduction not in ("mean", "batchmean"):
        raise LossError(
            f"the criterion has reduction={reduction!r}, but a step needs the mean over the batch: "
            'write reduction="mean"'
        )


def _attributes(criterion: Any) -> Mapping[str, Any]:
    """The attributes of an object; empty for those (builtins) that keep none."""
    return getattr(criterion, "__dict__", {})


def _no_pair(batch: Any) -> LossError:
    what = _options.kind_of(batch)
    if isinstance(batch, (tuple, list)):
        what = f"{what} of {len(batch)}"
    return LossError(
        f"supervised takes batches of (inputs, targets), and this one is {what}: "
        "write your own loss_fn(model, batch) that returns the loss"
    )


def _no_mean(loss: Any) -> LossError:
    what = _options.shown(loss)
    if isinstance(loss, Tensor):
        what = f"a tensor of shape {tuple(loss.shape)}"
    return LossError(
        f"the criterion returned {what}, not a scalar: "
        "return the mean over the batch, or write your own loss_fn(model, batch)"
    )
