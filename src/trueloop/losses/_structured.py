"""Losses of `losses.for_task` whose inputs or means have a special structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from trueloop import _options
from trueloop.errors import ConfigError, LossError
from trueloop.losses import _checks, _loss_options
from trueloop.losses._counts import count_of
from trueloop.losses._criteria import TaskLoss, like, wide


class RankingLoss(TaskLoss):
    """Which of two items ranks higher, the mean over pairs.

    Shapes: outputs (N, 2), the scores of each pair's first and second item, or a tuple of two
    (N,); targets (N,): 1 where the first item ranks higher, -1 where the second does; integers or
    floating point.

    Args:
        classes: None; ranking has no classes.
        method: ``"margin"``, max(0, margin - y (s1 - s2)) (`F.margin_ranking_loss`); or
            ``"logistic"``, log(1 + exp(-y (s1 - s2))): RankNet (Burges et al., ICML 2005), which
            for y = 1 is BPR (Rendle et al., UAI 2009).
        margin: by how much the higher score must lead, above 0; 1.0 by default. Only for
            ``"margin"``.
    """

    task = "ranking"

    def __init__(
        self, *, classes: int | None = None, method: str = "margin", margin: float | None = None
    ) -> None:
        super().__init__()
        _loss_options.class_count(self.task, classes, least=0, most=0)
        self.method = _options.choice("method", method, ("margin", "logistic"))
        if method == "logistic" and margin is not None:
            raise ConfigError('method="logistic" has no margin: leave margin out')
        self.margin = 1.0 if margin is None else _options.positive("margin", margin)

    def forward(self, outputs: Tensor | tuple[Tensor, Tensor], targets: Tensor) -> Tensor:
        self._check(outputs, targets)
        first, second = outputs.unbind(1) if isinstance(outputs, Tensor) else outputs
        first, second = wide(first), wide(second)
        sign = like(targets, first)
        if self.method == "margin":
            return F.margin_ranking_loss(first, second, sign, margin=self.margin)
        return F.softplus(-sign * (first - second)).mean()

    def _form(self, outputs: Any, targets: Any) -> object:
        if isinstance(outputs, (tuple, list)):
            parts = [super(RankingLoss, self)._form(part, targets) for part in outputs]
            return None if None in parts else tuple(parts)
        return super()._form(outputs, targets)

    def _check_form(self, outputs: Any, targets: Any) -> None:
        if isinstance(outputs, (tuple, list)):
            if len(outputs) != 2:
                raise LossError(
                    f"ranking loss: the model returned {len(outputs)} tensors: "
                    "return two, the scores of each pair's first and second item"
                )
            for scores in outputs:
                super()._check_form(scores, targets)
                _checks.same_shape(self.task, scores, targets)
        else:
            super()._check_form(outputs, targets)
            if outputs.ndim != 2 or outputs.shape[1] != 2:
                raise LossError(
                    f"ranking loss: outputs {_checks.shown(outputs)} are not (N, 2): "
                    "return the scores of each pair's first and second item"
                )
            _checks.same_shape(self.task, outputs[:, 0], targets)

    def _check_values(self, outputs: Any, targets: Any) -> None:
        _checks.signs(targets)


class DistillationLoss(TaskLoss):
    """A student learns from the labels and from a teacher's softened outputs.

    alpha T² KL(softmax(teacher / T) || softmax(outputs / T)) + (1 - alpha) CE(outputs, labels),
    the mean over samples. Hinton, Vinyals and Dean, "Distilling the knowledge in a neural
    network", 2015; T² keeps the size of the soft part's gradient independent of T.

    Shapes: outputs (N, C), the student's logits; targets a tuple (labels, teacher): labels (N,),
    class indices, and teacher (N, C), the teacher's logits, which get no gradient.

    Args:
        classes: C; None takes what the model gives.
        temperature: T, above 0.
        alpha: the teacher's share, from 0 to 1.
    """

    task = "distillation"

    def __init__(
        self, *, classes: int | None = None, temperature: float = 2.0, alpha: float = 0.5
    ) -> None:
        super().__init__()
        self.classes = _loss_options.class_count(self.task, classes, least=2)
        self.temperature = _options.positive("temperature", temperature)
        self.alpha = _options.share("alpha", alpha)

    def forward(self, outputs: Tensor, targets: tuple[Tensor, Tensor]) -> Tensor:
        self._check(outputs, targets)
        labels, teacher = targets
        outputs = wide(outputs)
        t = self.temperature
        soft = F.kl_div(
            F.log_softmax(outputs / t, dim=1),
            F.log_softmax(like(teacher.detach(), outputs) / t, dim=1),
            reduction="batchmean",
            log_target=True,
        )
        hard = F.cross_entropy(outputs, labels.long())
        return self.alpha * t**2 * soft + (1 - self.alpha) * hard

    def _form(self, outputs: Any, targets: Any) -> object:
        if not isinstance(targets, (tuple, list)):
            return None
        parts = [super(DistillationLoss, self)._form(outputs, part) for part in targets]
        return None if None in parts else tuple(parts)

    def _check_form(self, outputs: Any, targets: Any) -> None:
        if not isinstance(targets, (tuple, list)) or len(targets) != 2:
            raise LossError(
                "distillation loss: the targets are not a pair: write batches of (inputs, (labels, "
                "teacher_logits))"
            )
        labels, teacher = targets
        super()._check_form(outputs, labels)
        super()._check_form(outputs, teacher)
        _checks.columns(self.task, outputs, self.classes)
        if outputs.shape != teacher.shape or outputs.ndim != 2:
            raise LossError(
                f"distillation loss: the student gives {_checks.shown(outputs)}, the teacher "
                f"{_checks.shown(teacher)}: both must be (N, C), with the same classes"
            )
        if labels.shape == outputs.shape:
            raise LossError(
                f"distillation loss: labels {_checks.shown(labels)} are not class indices: write "
                "batches of (inputs, (labels, teacher_logits)), labels.argmax(1) if one-hot"
            )
        _checks.class_targets(self.task, outputs, labels)

    def _check_values(self, outputs: Any, targets: Any) -> None:
        labels, teacher = targets
        _checks.class_range(self.task, labels, outputs.shape[1], None)
        _checks.finite(self.task, teacher)
        _checks.are_logits(self.task, outputs)
        _checks.are_logits(self.task, teacher)


class SegmentationLoss(TaskLoss):
    """Soft Dice and cross-entropy of every pixel, added.

    Dice of a class: 1 - (2 Σ p g + s) / (Σ p + Σ g + s) over the pixels of one sample, with p the
    predicted probability, g the target and s `smooth`; the mean over classes. Milletari, Navab
    and Ahmadi, "V-Net", 3DV 2016, with the plain denominator of Sudre et al., DLMIA 2017.

    Both terms are computed per sample and then averaged over samples, so that accumulated
    micro-batches equal their union. (Dice over a whole batch has no such property: its ratio does
    not split into parts.) A sample without any pixel that counts is not part of the mean.

    Shapes: one class: outputs (N, 1, H, W), targets the same, in [0, 1] (floating point, or
    integers or bools of 0 and 1). C classes: outputs (N, C, H, W), targets (N, H, W), class
    indices. One or three spatial dimensions do as well as two.

    Args:
        classes: C; None takes what the model gives. With 1 or 2, a single output channel is
            taken for the second class.
        smooth: s, at least 0; above 0, a class that is neither there nor predicted costs nothing.
        weights: of Dice and of cross-entropy, both at least 0.
        class_weights: C weights above 0 of the classes in the cross-entropy; not for one class.
        ignore_index: the target value of pixels that count in neither term.
    """

    task = "segmentation"

    def __init__(
        self,
        *,
        classes: int | None = None,
        smooth: float = 1.0,
        weights: Sequence[float] = (1.0, 1.0),
        class_weights: Any = None,
        ignore_index: int = -100,
    ) -> None:
        super().__init__()
        self.classes = _loss_options.class_count(self.task, classes, least=1)
        self.smooth = _options.not_negative("smooth", smooth, "1.0")
        self.weights = _loss_options.two_shares("weights", weights)
        self.class_weights = _loss_options.class_weights(class_weights, self.classes)
        self.ignore_index = _loss_options.class_index(ignore_index)

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        self._check(outputs, targets)
        outputs = wide(outputs)
        kept = targets != self.ignore_index
        clean = torch.where(kept, targets, torch.zeros_like(targets))
        if outputs.shape[1] == 1:
            per_sample = self._one_class(outputs, clean, kept.to(outputs.dtype))
        else:
            per_sample = self._many_classes(outputs, clean.long(), kept.to(outputs.dtype))
        counted = kept.flatten(1).any(dim=1)
        return (per_sample * counted).sum() / counted.sum().clamp(min=1)

    def _one_class(self, outputs: Tensor, targets: Tensor, kept: Tensor) -> Tensor:
        targets = like(targets, outputs)
        pixels = F.binary_cross_entropy_with_logits(outputs, targets, reduction="none") * kept
        entropy = pixels.flatten(1).sum(1) / kept.flatten(1).sum(1).clamp(min=1)
        dice = self._dice(outputs.sigmoid() * kept, targets * kept)
        return self.weights[0] * dice + self.weights[1] * entropy

    def _many_classes(self, outputs: Tensor, targets: Tensor, kept: Tensor) -> Tensor:
        # One-hot by comparison: unlike scatter and nll_loss2d, deterministic on every device.
        shape = (1, -1) + (1,) * (outputs.ndim - 2)
        classes = torch.arange(outputs.shape[1], device=outputs.device).view(shape)
        kept = kept.unsqueeze(1)
        truth = (targets.unsqueeze(1) == classes) * kept
        share = truth
        if self.class_weights is not None:
            share = truth * self.class_weights.on(outputs).view(shape)
        total = share.flatten(1).sum(1)
        entropy = -(outputs.log_softmax(1) * share).flatten(1).sum(1)
        entropy = entropy / torch.where(total > 0, total, 1)
        dice = self._dice(outputs.softmax(1) * kept, truth)
        return self.weights[0] * dice + self.weights[1] * entropy

    def _dice(self, predicted: Tensor, truth: Tensor) -> Tensor:
        """Soft Dice loss per sample, (N,), from probabilities and targets (N, C, ...)."""
        predicted, truth = predicted.flatten(2), truth.flatten(2)
        overlap = 2 * (predicted * truth).sum(2) + self.smooth
        size = predicted.sum(2) + truth.sum(2) + self.smooth
        return (1 - overlap / size.clamp(min=torch.finfo(size.dtype).tiny)).mean(1)

    def count(self, outputs: Tensor, targets: Tensor) -> int | Tensor:
        """The count that the mean divides by, for accumulation: see `supervised`.

        Args:
            outputs: logits, (N, C, H, W); not read.
            targets: (N, H, W) or (N, 1, H, W).

        Returns:
            The number of samples that have a pixel that is not ignored.
        """
        return count_of((targets != self.ignore_index).flatten(1).any(dim=1))

    def _check_form(self, outputs: Any, targets: Any) -> None:
        super()._check_form(outputs, targets)
        if outputs.ndim < 3:
            raise LossError(
                f"segmentation loss: outputs {_checks.shown(outputs)} have no pixels: "
                "return (N, 1, H, W) for one class or (N, C, H, W) for C"
            )
        if outputs.shape[1] == 1 and self.classes in (None, 1, 2):
            if self.class_weights is not None:
                raise LossError(
                    "segmentation loss: class_weights need one output channel per class, the model "
                    "gives one in all: leave class_weights out, or give it two"
                )
            _checks.same_shape(self.task, outputs, targets)
            return
        _checks.columns(self.task, outputs, self.classes)
        if outputs.shape == targets.shape:
            raise LossError(
                f"segmentation loss: targets {_checks.shown(targets)} are not class indices: write "
                "targets.argmax(1)"
            )
        _checks.class_targets(self.task, outputs, targets)
        if self.class_weights is not None:
            self.class_weights.check_length(outputs.shape[1])

    def _check_values(self, outputs: Any, targets: Any) -> None:
        if outputs.shape[1] == 1:
            kept = targets != self.ignore_index
            _checks.unit_interval(self.task, torch.where(kept, targets, 0))
            return
        _checks.class_range(self.task, targets, outputs.shape[1], self.ignore_index)
        _checks.are_logits(self.task, outputs)
