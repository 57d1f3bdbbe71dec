"""The losses of `losses.for_task`, one module per task.

Each is called as `loss(outputs, targets)` and returns a mean, a scalar in float32 (float64 for
float64 outputs). On its first batch it checks shapes, dtypes and values; later, whenever shapes,
dtypes or the device change, only those, which costs no wait for the device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trueloop import _options
from trueloop.errors import LossError
from trueloop.losses import _checks, _loss_options
from trueloop.losses._counts import cross_entropy_count


class TaskLoss(nn.Module):
    """A loss that checks what it is given; each subclass documents the shapes that fit."""

    task = ""

    def __init__(self) -> None:
        super().__init__()
        self._seen: object = None
        self._values_checked = False

    def forward(self, outputs: Any, targets: Any) -> Tensor:
        """The mean loss of a batch.

        Args:
            outputs: the model's, of a shape and dtype that the class has.
            targets: those of the batch, as the class has them.

        Returns:
            A scalar in float32; in float64 for float64 outputs.

        Raises:
            LossError: outputs and targets do not fit.
        """
        raise NotImplementedError

    def _check(self, outputs: Any, targets: Any) -> None:
        if torch.compiler.is_compiling():
            return
        form = self._form(outputs, targets)
        if form is not None and form == self._seen:
            return
        self._check_form(outputs, targets)
        if not self._values_checked:
            self._check_values(outputs, targets)
        self._values_checked = True
        self._seen = form

    def _form(self, outputs: Any, targets: Any) -> object:
        """The properties that must not change without a new check: shapes, dtypes, device; None if
        no tensors."""
        if isinstance(outputs, Tensor) and isinstance(targets, Tensor):
            return (outputs.shape, targets.shape, outputs.dtype, targets.dtype, outputs.device)
        return None

    def _check_form(self, outputs: Any, targets: Any) -> None:
        _checks.are_tensors(self.task, outputs, targets)

    def _check_values(self, outputs: Any, targets: Any) -> None:
        """Look at the first batch's numbers; this may wait for the device."""

    def extra_repr(self) -> str:
        hidden = ("training", "task")
        return ", ".join(
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if not name.startswith("_") and name not in hidden
        )


def wide(outputs: Tensor) -> Tensor:
    """Half-precision outputs in float32, in which losses are computed; others as they are."""
    return outputs.float() if outputs.dtype in (torch.float16, torch.bfloat16) else outputs


def like(targets: Tensor, outputs: Tensor) -> Tensor:
    """Targets in the dtype of (wide) outputs: integers and bools converted, float64 narrowed."""
    return targets.to(outputs.dtype)


class _LogitsLoss(TaskLoss):
    """Binary cross-entropy of logits, the mean over all of them."""

    pos_weight: Any

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        self._check(outputs, targets)
        outputs = wide(outputs)
        weight = None if self.pos_weight is None else self.pos_weight.on(outputs)
        return F.binary_cross_entropy_with_logits(
            outputs, like(targets, outputs), pos_weight=weight
        )

    def _check_values(self, outputs: Any, targets: Any) -> None:
        _checks.unit_interval(self.task, targets)


class BinaryLoss(_LogitsLoss):
    """Binary cross-entropy of one logit per sample (`F.binary_cross_entropy_with_logits`).

    Shapes: outputs (N,) or (N, 1), floating point logits; targets of the same shape, in [0, 1]:
    floating point, or integers or bools of 0 and 1.

    Args:
        classes: None, 1 or 2 (the names of both sides); one logit is that of the second class.
        pos_weight: weight of the positive class relative to the negative, above 0.
    """

    task = "binary"

    def __init__(self, *, classes: int | None = None, pos_weight: float | None = None) -> None:
        super().__init__()
        _loss_options.class_count(self.task, classes, least=1, most=2)
        self.pos_weight = _loss_options.pos_weight(pos_weight, 1)

    def _check_form(self, outputs: Any, targets: Any) -> None:
        super()._check_form(outputs, targets)
        _checks.one_output(outputs)
        _checks.same_shape(self.task, outputs, targets)


class MultilabelLoss(_LogitsLoss):
    """Binary cross-entropy of C independent logits per sample, the mean over all N * C.

    Shapes: outputs (N, C), floating point logits; targets (N, C) in [0, 1]: floating point, or
    integers or bools of 0 and 1.

    Args:
        classes: C; None takes what the model gives.
        pos_weight: weight of a label's presence relative to its absence, above 0: one number, or
            one per label.
    """

    task = "multilabel"

    def __init__(self, *, classes: int | None = None, pos_weight: Any = None) -> None:
        super().__init__()
        self.classes = _loss_options.class_count(self.task, classes, least=1)
        self.pos_weight = _loss_options.pos_weight(pos_weight, self.classes)

    def _check_form(self, outputs: Any, targets: Any) -> None:
        super()._check_form(outputs, targets)
        if outputs.ndim != 2:
            raise LossError(
                f"multilabel loss: outputs {_checks.shown(outputs)} are not (N, C): "
                "give the model's last layer one output per label"
            )
        if outputs.shape[:1] == targets.shape and outputs.shape[1] > 1:
            raise LossError(
                f"multilabel loss: outputs {_checks.shown(outputs)} against targets "
                f"{_checks.shown(targets)}: write the task 'multiclass' for one class per sample, "
                f"or F.one_hot(targets, {outputs.shape[1]}).float()"
            )
        _checks.same_shape(self.task, outputs, targets)
        labels = outputs.shape[1]
        if self.classes is not None and labels != self.classes:
            raise LossError(
                f"multilabel loss: the model gives {labels} outputs for {self.classes} labels: "
                f"give its last layer {self.classes} outputs"
            )
        if self.pos_weight is not None:
            self.pos_weight.check_length(labels)


class MulticlassLoss(TaskLoss):
    """Cross-entropy of C logits per sample (`F.cross_entropy`), and bitwise equal to it.

    Shapes: outputs (N, C) or (N, C, d1, ...), floating point logits (no softmax before); targets
    (N,) or (N, d1, ...), class indices of any integer dtype from 0 to C - 1; or soft targets of
    the outputs' shape, floating point, that sum to 1 over the classes.

    The mean is over the targets that are not ignored, weighted by their class weights. Where all
    are ignored, torch's mean is 0/0; here the loss and its gradient are 0, and so is the count.

    Args:
        classes: C; None takes what the model gives.
        class_weights: C weights above 0, a list or a tensor.
        label_smoothing: the share in [0, 1) of the target that is spread over all classes
            (Szegedy et al., "Rethinking the Inception architecture", CVPR 2016).
        ignore_index: the target value to ignore.
    """

    task = "multiclass"

    def __init__(
        self,
        *,
        classes: int | None = None,
        class_weights: Any = None,
        label_smoothing: float = 0.0,
        ignore_index: int = -100,
    ) -> None:
        super().__init__()
        self.classes = _loss_options.class_count(self.task, classes, least=2)
        self.class_weights = _loss_options.class_weights(class_weights, self.classes)
        self.label_smoothing = _options.share("label_smoothing", label_smoothing, below_one=True)
        self.ignore_index = _loss_options.class_index(ignore_index)

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        self._check(outputs, targets)
        outputs = wide(outputs)
        soft = targets.is_floating_point()
        targets = like(targets, outputs) if soft else targets.long()
        loss = F.cross_entropy(
            outputs,
            targets,
            weight=None if self.class_weights is None else self.class_weights.on(outputs),
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )
        return loss if soft else self._zero_if_empty(loss, targets)

    def _zero_if_empty(self, loss: Tensor, targets: Tensor) -> Tensor:
        """`loss` itself, its value and gradient untouched, unless every target is ignored."""
        immediate = loss.device.type == "cpu" and not torch.compiler.is_compiling()
        # Reading a number costs nothing on the CPU, and spares it the three operations below.
        if immediate and not math.isnan(loss.item()):
            return loss
        # `where` hands the empty batch's NaN a zero gradient, which cross-entropy's backward
        # turns into zeros: it writes to no row whose target is ignored.
        kept = (targets != self.ignore_index).any()
        return torch.where(kept, loss, torch.zeros_like(loss))

    def count(self, outputs: Tensor, targets: Tensor) -> int | Tensor:
        """The count that the mean divides by, for accumulation: see `supervised`.

        Args:
            outputs: logits, (N, C) or (N, C, d1, ...).
            targets: class indices, or soft targets.

        Returns:
            The number of targets that are not ignored, or the sum of their class weights.
        """
        weights = None if self.class_weights is None else self.class_weights.on(wide(outputs))
        return cross_entropy_count(outputs, targets, weights, self.ignore_index)

    def _check_form(self, outputs: Any, targets: Any) -> None:
        super()._check_form(outputs, targets)
        _checks.columns(self.task, outputs, None)
        _checks.class_targets(self.task, outputs, targets)
        _checks.columns(self.task, outputs, self.classes)
        if targets.is_floating_point() and self.ignore_index >= 0:
            raise LossError(
                "multiclass loss: soft targets have no class index to ignore: remove ignore_index"
            )
        if self.class_weights is not None:
            self.class_weights.check_length(outputs.shape[1])

    def _check_values(self, outputs: Any, targets: Any) -> None:
        if targets.is_floating_point():
            _checks.sums_to_one(self.task, targets)
        else:
            _checks.class_range(self.task, targets, outputs.shape[1], self.ignore_index)
        _checks.are_logits(self.task, outputs)


class RegressionLoss(TaskLoss):
    """Squared or absolute error, the mean over all elements.

    Shapes: outputs (N,), (N, 1) or (N, K), floating point; targets of the same shape, floating
    point or integers (converted), in the target's own unit.

    Args:
        classes: None; regression has no classes.
        method: ``"mse"``, mean squared error, or ``"mae"``, mean absolute error.
    """

    task = "regression"

    def __init__(self, *, classes: int | None = None, method: str = "mse") -> None:
        super().__init__()
        _loss_options.class_count(self.task, classes, least=0, most=0)
        self.method = _options.choice("method", method, ("mse", "mae"))

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        self._check(outputs, targets)
        outputs = wide(outputs)
        error = F.mse_loss if self.method == "mse" else F.l1_loss
        return error(outputs, like(targets, outputs))

    def _check_form(self, outputs: Any, targets: Any) -> None:
        super()._check_form(outputs, targets)
        _checks.same_shape(self.task, outputs, targets)

    def _check_values(self, outputs: Any, targets: Any) -> None:
        _checks.finite(self.task, targets)


class QuantileLoss(TaskLoss):
    """Pinball loss of Q quantiles per sample, the mean over all N * Q.

    For the quantile q and the error e = target - output it is max(q e, (q - 1) e), which is least
    on average where a share q of the targets is below the output (Koenker and Bassett,
    "Regression quantiles", Econometrica 1978). The mean of scikit-learn's `mean_pinball_loss` over
    the quantiles.

    Shapes: outputs (N, Q), floating point, one column per quantile in their order; targets (N,) or
    (N, 1), floating point or integers (converted). Nothing keeps the columns in order: sort them
    where you predict, ``outputs.sort(dim=1).values``, which never makes them worse (Chernozhukov,
    Fernández-Val and Galichon, "Quantile and probability curves without crossing", Econometrica
    2010).

    Args:
        classes: None; regression has no classes.
        quantiles: numbers between 0 and 1, ascending.
    """

    task = "quantile"

    def __init__(
        self, *, classes: int | None = None, quantiles: Sequence[float] = (0.05, 0.5, 0.95)
    ) -> None:
        super().__init__()
        _loss_options.class_count(self.task, classes, least=0, most=0)
        self.quantiles = _options.quantiles("quantiles", quantiles)

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        self._check(outputs, targets)
        outputs = wide(outputs)
        error = like(targets, outputs).reshape(-1, 1) - outputs
        parts = [
            torch.maximum(q * part, (q - 1) * part)
            for q, part in zip(self.quantiles, error.unbind(1), strict=True)
        ]
        return torch.stack(parts).mean()

    def _check_form(self, outputs: Any, targets: Any) -> None:
        super()._check_form(outputs, targets)
        count = len(self.quantiles)
        if outputs.ndim != 2 or outputs.shape[1] != count:
            raise LossError(
                f"quantile loss: outputs {_checks.shown(outputs)} are not (N, {count}): give the "
                f"model's last layer {count} outputs, one per quantile"
            )
        if targets.shape not in (outputs.shape[:1], (len(outputs), 1)):
            raise LossError(
                f"quantile loss: outputs {_checks.shown(outputs)} against targets "
                f"{_checks.shown(targets)}: give one target per sample, (N,) or (N, 1)"
            )

    def _check_values(self, outputs: Any, targets: Any) -> None:
        _checks.finite(self.task, targets)


class RobustLoss(RegressionLoss):
    """Regression that outliers do not rule: quadratic near zero, linear beyond `delta`.

    Shapes as in `RegressionLoss`. Huber, "Robust estimation of a location parameter", 1964;
    smooth L1 is Huber's loss divided by delta (Girshick, "Fast R-CNN", ICCV 2015).

    Args:
        classes: None; regression has no classes.
        method: ``"huber"`` or ``"smooth_l1"``.
        delta: the error at which the loss turns linear, in the target's unit, above 0.
    """

    task = "robust"

    def __init__(
        self, *, classes: int | None = None, method: str = "huber", delta: float = 1.0
    ) -> None:
        super().__init__(classes=classes)
        self.method = _options.choice("method", method, ("huber", "smooth_l1"))
        self.delta = _options.positive("delta", delta)

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        self._check(outputs, targets)
        outputs = wide(outputs)
        targets = like(targets, outputs)
        if self.method == "huber":
            return F.huber_loss(outputs, targets, delta=self.delta)
        return F.smooth_l1_loss(outputs, targets, beta=self.delta)
