"""Area under the ROC curve, each class against the rest: exact, or binned in constant memory."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor

from trueloop.metrics._base import Sums, double, load_metric_state, metric_state


class Auroc:
    """One area per column.

    `update` takes logits (M, K) and targets: with `one_of`, where each row's classes exclude each
    other, class indices (M,) that are negative where ignored; otherwise (M, K) of 0 and 1.
    """

    def __init__(self, columns: int, thresholds: int | None, *, one_of: bool) -> None:
        self._columns = columns
        self._broken = Sums(scores=())
        self._curve: _Exact | _Binned
        if thresholds is None:
            self._curve = _Exact(columns, one_of)
        else:
            self._curve = _Binned(columns, thresholds, one_of)

    def reset(self) -> None:
        self._broken.reset()
        self._curve.reset()

    def to(self, device: torch.device | str) -> None:
        self._broken.to(device)
        self._curve.to(device)

    def state_dict(self) -> dict[str, Any]:
        return {"broken": self._broken.state_dict(), "curve": self._curve.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._broken.load_state_dict(state["broken"])
        self._curve.load_state_dict(state["curve"])

    def update(self, logits: Tensor, targets: Tensor) -> None:
        self._broken.add("scores", logits.isnan().any())
        # Widened first: in float32 every probability of a logit above 17 is 1.
        self._curve.update(double(logits), targets)

    def areas(self, positives: Tensor, samples: Tensor) -> Tensor:
        """(K,), float64; NaN for a column without positives or without negatives, and for all
        columns after a NaN among the scores. `positives` is (K,), `samples` a scalar."""
        defined = (positives > 0) & (positives < samples) & (self._broken.total("scores") == 0)
        if not bool(defined.any()):
            return torch.full((self._columns,), math.nan, dtype=torch.float64)
        return torch.where(defined, self._curve.areas(), math.nan)


class _Exact:
    """From every score, by torchmetrics."""

    def __init__(self, columns: int, one_of: bool) -> None:
        from torchmetrics import classification

        self._flat = columns == 1
        self._one_of = one_of
        # `over_ranks` has brought the other ranks' scores already.
        options: dict[str, Any] = {"validate_args": False, "sync_on_compute": False}
        if self._flat:
            self._metric: Any = classification.BinaryAUROC(**options)
        elif one_of:
            self._metric = classification.MulticlassAUROC(
                columns, average="none", ignore_index=-1, **options
            )
        else:
            self._metric = classification.MultilabelAUROC(columns, average="none", **options)

    def reset(self) -> None:
        self._metric.reset()

    def to(self, device: torch.device | str) -> None:
        self._metric.to(device)

    def state_dict(self) -> dict[str, Any]:
        return metric_state(self._metric)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_metric_state(self._metric, state)

    def update(self, logits: Tensor, targets: Tensor) -> None:
        # Only the order matters for a lone logit: unlike the sigmoid, the arc tangent keeps large
        # ones apart. Within 0 to 1, because torchmetrics takes a batch outside that for logits.
        scores = logits.softmax(1) if self._one_of else 0.5 + logits.atan() / math.pi
        if self._flat:
            scores, targets = scores.flatten(), targets.flatten()
        self._metric.update(scores, targets.long())

    def areas(self) -> Tensor:
        with warnings.catch_warnings():
            # Of classes that do not occur, which `Auroc.areas` leaves out.
            warnings.simplefilter("ignore")
            areas: Tensor = self._metric.compute()
        return areas.cpu().double().reshape(-1)


class _Binned:
    """From counts of positives and negatives in equal bins of probability.

    With p_b and n_b of them in bin b, the area is sum_b p_b (n_0 + ... + n_(b-1) + n_b / 2) / (P N)
    (Mann and Whitney, 1947): scores in one bin are ties, and ties count half.
    """

    def __init__(self, columns: int, bins: int, one_of: bool) -> None:
        self._columns = columns
        self._one_of = one_of
        self._bins = bins
        self._sums = Sums(bins=(columns, bins, 2))

    def reset(self) -> None:
        self._sums.reset()

    def to(self, device: torch.device | str) -> None:
        self._sums.to(device)

    def state_dict(self) -> dict[str, Any]:
        return self._sums.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._sums.load_state_dict(state)

    def update(self, logits: Tensor, targets: Tensor) -> None:
        column = torch.arange(self._columns, device=logits.device)
        if self._one_of:
            scores, positive = logits.softmax(1), targets[:, None] == column
            kept = (targets >= 0)[:, None].expand_as(scores).flatten()
        else:
            scores, positive, kept = logits.sigmoid(), targets > 0, None
        height = (scores.nan_to_num() * self._bins).long().clamp(max=self._bins - 1)
        cell = (column * self._bins + height) * 2 + positive
        self._sums.count("bins", cell.flatten(), kept)

    def areas(self) -> Tensor:
        negatives, positives = self._sums.total("bins").unbind(-1)
        below = negatives.cumsum(1) - negatives / 2
        return (positives * below).sum(1) / (positives.sum(1) * negatives.sum(1))
