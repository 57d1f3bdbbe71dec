"""The sets of `metrics.for_task`."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor

from trueloop import ranks
from trueloop.errors import LossError
from trueloop.metrics._auroc import Auroc
from trueloop.metrics._base import (
    MergedSet,
    MetricSet,
    Sums,
    double,
    mean_where,
    of_all_ranks,
    ratio,
)


class _Counting(MergedSet):
    """A set that is made of counts and, for classifiers, of an AUROC beside them."""

    def __init__(self, auroc: Auroc | None = None, **shapes: tuple[int, ...]) -> None:
        self._sums = Sums(**shapes)
        self._auroc = auroc

    def reset(self) -> None:
        self._sums.reset()
        if self._auroc is not None:
            self._auroc.reset()

    def to(self, device: torch.device | str) -> MetricSet:
        self._sums.to(device)
        if self._auroc is not None:
            self._auroc.to(device)
        return self

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"sums": self._sums.state_dict()}
        if self._auroc is not None:
            state["auroc"] = self._auroc.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._sums.load_state_dict(state["sums"])
        if self._auroc is not None:
            self._auroc.load_state_dict(state["auroc"])

    def _follow(self, outputs: Tensor) -> None:
        if outputs.device != self._sums.device:
            self.to(outputs.device)

    def _areas(self, positives: Tensor, samples: Tensor) -> Tensor:
        assert self._auroc is not None
        return self._auroc.areas(positives, samples)


class _Confusion(_Counting):
    """A set that is made of a confusion matrix, rows true and columns predicted."""

    @of_all_ranks
    def details(self) -> dict[str, Any]:
        matrix = self._sums.total("matrix")
        return {
            "confusion": matrix.long().tolist(),
            "per_class": _per_class(*_marginals(matrix)),
        }


class Multiclass(_Confusion):
    """Outputs (N, C, ...), logits; targets (N, ...), class indices, or soft targets (N, C, ...)."""

    def __init__(
        self,
        classes: int,
        *,
        top_k: int | None = None,
        average: str = "macro",
        thresholds: int | None = None,
        ignore_index: int = -100,
    ) -> None:
        if top_k is None and classes >= 10:
            top_k = 5
        self._classes = classes
        self._top_k = top_k
        self._average = average
        self._targets = _ClassTargets(classes, ignore_index)
        super().__init__(Auroc(classes, thresholds, one_of=True), matrix=(classes, classes), top=())

    @torch.no_grad()
    def update(self, outputs: Tensor, targets: Tensor) -> None:
        self._follow(outputs)
        outputs, targets, kept = self._targets.flat(outputs, targets)
        cells = targets * self._classes + outputs.argmax(1)
        self._sums.count("matrix", torch.where(kept, cells, 0), kept)
        if self._top_k is not None:
            best = outputs.topk(self._top_k, dim=1).indices
            self._sums.add("top", (best == targets[:, None]).sum())
        assert self._auroc is not None
        self._auroc.update(outputs, targets)

    @of_all_ranks
    def compute(self) -> dict[str, float]:
        matrix = self._sums.total("matrix")
        right, predicted, support = _marginals(matrix)
        scores = {"accuracy": float(right.sum() / matrix.sum())}
        if self._top_k is not None:
            scores[f"top{self._top_k}"] = float(self._sums.total("top") / matrix.sum())
        scores |= _averaged(right, predicted, support, self._average)
        areas = self._areas(support, matrix.sum())
        weights = support if self._average == "weighted" else None
        scores["auroc"] = mean_where(~areas.isnan(), areas, weights)
        return scores


class Distillation(Multiclass):
    """As `Multiclass`, on the labels of targets (labels, teacher logits)."""

    @torch.no_grad()
    def update(self, outputs: Tensor, targets: Any) -> None:
        super().update(outputs, targets[0])


class Binary(_Confusion):
    """Outputs (N,) or (N, 1), logits; targets of as many elements, positive above 0.5."""

    def __init__(self, *, thresholds: int | None = None) -> None:
        super().__init__(Auroc(1, thresholds, one_of=False), matrix=(2, 2))

    @torch.no_grad()
    def update(self, outputs: Tensor, targets: Tensor) -> None:
        self._follow(outputs)
        _same_size("binary", outputs, targets)
        outputs, positive = outputs.reshape(-1), (targets > 0.5).reshape(-1)
        self._sums.count("matrix", positive * 2 + (outputs > 0).long())
        assert self._auroc is not None
        self._auroc.update(outputs[:, None], positive[:, None])

    @of_all_ranks
    def compute(self) -> dict[str, float]:
        matrix = self._sums.total("matrix")
        right, predicted, support = _marginals(matrix)
        scores = {"accuracy": float(right.sum() / matrix.sum())}
        scores |= _averaged(right[1:], predicted[1:], support[1:], "macro")
        scores["auroc"] = self._areas(support[1:], matrix.sum()).item()
        return scores


class Multilabel(_Counting):
    """Outputs (N, C), logits; targets (N, C), positive above 0.5."""

    def __init__(
        self, classes: int, *, average: str = "macro", thresholds: int | None = None
    ) -> None:
        self._classes = classes
        self._average = average
        each = (classes,)
        super().__init__(
            Auroc(classes, thresholds, one_of=False),
            right=each, predicted=each, support=each, same=(), subset=(), samples=(),
        )  # fmt: skip

    @torch.no_grad()
    def update(self, outputs: Tensor, targets: Tensor) -> None:
        self._follow(outputs)
        _same_size("multilabel", outputs, targets)
        _has_columns("multilabel", outputs, self._classes)
        predicted, positive = outputs > 0, targets > 0.5
        same = predicted == positive
        self._sums.add("right", (predicted & positive).sum(0))
        self._sums.add("predicted", predicted.sum(0))
        self._sums.add("support", positive.sum(0))
        self._sums.add("same", same.sum())
        self._sums.add("subset", same.all(1).sum())
        self._sums.add("samples", len(outputs))
        assert self._auroc is not None
        self._auroc.update(outputs, positive)

    @of_all_ranks
    def compute(self) -> dict[str, float]:
        right, predicted, support = self._labels()
        samples = self._sums.total("samples")
        areas = self._areas(support, samples)
        weights = support if self._average == "weighted" else None
        return {
            "accuracy": float(self._sums.total("same") / (samples * self._classes)),
            "subset_accuracy": float(self._sums.total("subset") / samples),
            **_averaged(right, predicted, support, self._average),
            "auroc": mean_where(~areas.isnan(), areas, weights),
        }

    @of_all_ranks
    def details(self) -> dict[str, Any]:
        return {"per_class": _per_class(*self._labels())}

    def _labels(self) -> tuple[Tensor, Tensor, Tensor]:
        right, predicted, support = map(self._sums.total, ("right", "predicted", "support"))
        return right, predicted, support


class Segmentation(_Confusion):
    """Outputs (N, C, ...), logits, and targets (N, ...), class indices; or outputs and targets
    (N, 1, ...), of which the foreground, above 0.5, is measured."""

    def __init__(self, classes: int, *, ignore_index: int = -100) -> None:
        self._classes = classes
        self._ignore_index = ignore_index
        self._targets = _ClassTargets(classes, ignore_index)
        super().__init__(matrix=(classes, classes), single=())

    @torch.no_grad()
    def update(self, outputs: Tensor, targets: Tensor) -> None:
        self._follow(outputs)
        if outputs.shape[1] == 1 and self._classes == 2:
            _same_size("segmentation", outputs, targets)
            predicted, targets = (outputs > 0).reshape(-1), targets.reshape(-1)
            kept = targets != self._ignore_index
            targets = targets > 0.5
            self._sums.add("single", 1)
        else:
            outputs, targets, kept = self._targets.flat(outputs, targets)
            predicted = outputs.argmax(1)
        cells = targets * self._classes + predicted.long()
        self._sums.count("matrix", torch.where(kept, cells, 0), kept)

    @of_all_ranks
    def compute(self) -> dict[str, float]:
        matrix = self._sums.total("matrix")
        right, predicted, support = _marginals(matrix)
        both = predicted + support
        measured = both > 0
        if self._sums.total("single") > 0:
            measured[0] = False
        return {
            "accuracy": float(right.sum() / matrix.sum()),
            "iou": mean_where(measured, ratio(right, both - right)),
            "dice": mean_where(measured, ratio(2 * right, both)),
        }

    @of_all_ranks
    def details(self) -> dict[str, Any]:
        matrix = self._sums.total("matrix")
        right, predicted, support = _marginals(matrix)
        rows = _per_class(right, predicted, support)
        for row, iou in zip(rows, ratio(right, predicted + support - right).tolist(), strict=True):
            row["iou"] = iou
        return {"confusion": matrix.long().tolist(), "per_class": rows}


class Ranking(_Counting):
    """Outputs (N, 2) or a pair of (N,), scores; targets (N,): 1 or -1."""

    def __init__(self) -> None:
        super().__init__(halves=(), pairs=())

    @torch.no_grad()
    def update(self, outputs: Tensor | tuple[Tensor, Tensor], targets: Tensor) -> None:
        first, second = outputs.unbind(1) if isinstance(outputs, Tensor) else outputs
        self._follow(first)
        lead = (first - second) * targets
        self._sums.add("halves", (2 * (lead > 0) + (lead == 0).long()).sum())
        self._sums.add("pairs", len(lead))

    @of_all_ranks
    def compute(self) -> dict[str, float]:
        return {"accuracy": float(self._sums.total("halves") / (2 * self._sums.total("pairs")))}


class Regression(MergedSet):
    """Outputs and targets (N,), (N, 1) or (N, K): K outputs, averaged.

    Sums in float64 (float32 on MPS). The targets' variance is merged batch by batch from means
    (Chan, Golub and LeVeque, 1979): sums of squares would cancel for targets far from zero.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._batches: list[tuple[int, Tensor]] = []
        """Samples, and (4, K): absolute errors, squared errors, mean of the targets, their squared
        deviations from it. One for all batches; on several ranks, where all of them are merged in
        the feed's order, one for each."""

    def to(self, device: torch.device | str) -> MetricSet:
        self._batches = [(n, sums.to(device)) for n, sums in self._batches]
        return self

    def state_dict(self) -> dict[str, Any]:
        return {"batches": [list(batch) for batch in self._batches]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if "batches" in state:
            self._batches = [(n, sums.clone()) for n, sums in state["batches"]]
        else:  # as one process has written it before
            self._batches = [] if state["sums"] is None else [(state["n"], state["sums"].clone())]

    @torch.no_grad()
    def update(self, outputs: Tensor, targets: Tensor) -> None:
        _same_size("regression", outputs, targets)
        n = len(outputs)
        y = double(targets).reshape(n, -1)
        error = double(outputs).reshape(n, -1) - y
        mean = y.mean(0)
        batch = torch.stack([error.abs().sum(0), (error**2).sum(0), mean, ((y - mean) ** 2).sum(0)])
        self._batches.append((n, batch))
        if not ranks.is_distributed():
            self._batches = [functools.reduce(_union, self._batches)]

    @of_all_ranks
    def compute(self) -> dict[str, float]:
        if not self._batches:
            return dict.fromkeys(("mae", "rmse", "r2"), math.nan)
        n, (absolute, squared, overall, spread) = functools.reduce(_union, self._batches)
        # Constant targets leave no more than what rounding leaves.
        varies = spread > n * (4 * torch.finfo(spread.dtype).eps * overall) ** 2
        r2 = 1 - squared / torch.where(varies, spread, 1)
        return {
            "mae": float((absolute / n).mean()),
            "rmse": float((squared / n).sqrt().mean()),
            "r2": mean_where(varies, r2),
        }


def _union(one: tuple[int, Tensor], other: tuple[int, Tensor]) -> tuple[int, Tensor]:
    """The sums of `Regression` for two batches, merged."""
    before, sums = one
    n, batch = other
    total = before + n
    step = batch[2] - sums[2]
    spread = torch.stack([torch.zeros_like(step)] * 3 + [step**2 * before * n / total])
    moved = torch.stack([batch[0], batch[1], step * n / total, batch[3]])
    return total, sums.to(batch.device) + moved + spread


class _ClassTargets:
    """Outputs (N, C, ...) as rows, beside their class indices; the first batch is checked."""

    def __init__(self, classes: int, ignore_index: int) -> None:
        self._classes = classes
        self._ignore_index = ignore_index
        self._checked = False

    def flat(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs (M, C), targets (M,), int64 and -1 where ignored, and which are kept, (M,)."""
        _has_columns("the", outputs, self._classes)
        if targets.shape == outputs.shape:
            targets = targets.argmax(1)
        if outputs.ndim > 2:
            outputs = outputs.movedim(1, -1).reshape(-1, self._classes)
        targets = targets.reshape(-1)
        if len(targets) != len(outputs):
            raise LossError(
                f"metrics: {len(outputs)} rows of outputs against {len(targets)} targets: "
                "give them one class index per row"
            )
        kept = targets != self._ignore_index
        if not self._checked:
            self._check(targets[kept])
        return outputs, torch.where(kept, targets, -1).long(), kept

    def _check(self, targets: Tensor) -> None:
        if targets.numel() and not 0 <= int(targets.min()) <= int(targets.max()) < self._classes:
            worst = int(targets.min()) if int(targets.min()) < 0 else int(targets.max())
            raise LossError(
                f"metrics: the target {worst} is outside the classes 0 to {self._classes - 1}: "
                "correct the labels, the number of classes or ignore_index"
            )
        self._checked = True


def _has_columns(task: str, outputs: Tensor, classes: int) -> None:
    if outputs.ndim < 2 or outputs.shape[1] != classes:
        raise LossError(
            f"{task} metrics are for {classes} classes, the outputs are {tuple(outputs.shape)}: "
            f"give the model {classes} outputs, or the metrics the right number of classes"
        )


def _same_size(task: str, outputs: Tensor, targets: Tensor) -> None:
    if len(outputs) != len(targets) or outputs.numel() != targets.numel():
        raise LossError(
            f"{task} metrics: outputs {tuple(outputs.shape)} against targets "
            f"{tuple(targets.shape)}: they must have one value each for every sample"
        )


def _marginals(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(C,) each: right, predicted, and true, from a matrix of (true, predicted)."""
    return matrix.diagonal(), matrix.sum(0), matrix.sum(1)


def _averaged(right: Tensor, predicted: Tensor, support: Tensor, average: str) -> dict[str, float]:
    if average == "micro":
        right, predicted, support = right.sum(0, True), predicted.sum(0, True), support.sum(0, True)
    occurs = predicted + support > 0
    weights = support if average == "weighted" else None
    return {
        "precision": mean_where(occurs, ratio(right, predicted), weights),
        "recall": mean_where(occurs, ratio(right, support), weights),
        "f1": mean_where(occurs, ratio(2 * right, predicted + support), weights),
    }


def _per_class(right: Tensor, predicted: Tensor, support: Tensor) -> list[dict[str, Any]]:
    columns = {
        "index": list(range(len(right))),
        "precision": ratio(right, predicted).tolist(),
        "recall": ratio(right, support).tolist(),
        "f1": ratio(2 * right, predicted + support).tolist(),
        "support": support.long().tolist(),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
