"""Area under the ROC curve, each class against the rest: exact, or binned in constant memory."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from trueloop.metrics._base import Sums, double


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
    """From every score: the share of pairs of a positive and a negative in which the positive has
    the higher score, where ties count half (Mann and Whitney, 1947)."""

    def __init__(self, columns: int, one_of: bool) -> None:
        self._columns = columns
        self._one_of = one_of
        self._device = torch.device("cpu")
        self.reset()

    def reset(self) -> None:
        self._scores: list[Tensor] = []
        self._targets: list[Tensor] = []

    def to(self, device: torch.device | str) -> None:
        self._device = torch.device(device)
        self._scores = [each.to(device) for each in self._scores]
        self._targets = [each.to(device) for each in self._targets]

    def state_dict(self) -> dict[str, Any]:
        states = {"preds": list(self._scores), "target": list(self._targets)}
        return {"updates": len(self._scores), "states": states}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._scores = list(state["states"]["preds"])
        self._targets = list(state["states"]["target"])
        self.to(self._device)

    def update(self, logits: Tensor, targets: Tensor) -> None:
        # Only the order matters, but between classes.
        self._scores.append(logits.softmax(1) if self._one_of else logits.clone())
        self._targets.append(targets.clone())

    def areas(self) -> Tensor:
        scores, targets = torch.cat(self._scores), torch.cat(self._targets)
        if self._one_of:
            scores, targets = scores[targets >= 0], targets[targets >= 0]
            targets = targets[:, None] == torch.arange(self._columns, device=targets.device)
        else:
            scores, targets = (x.reshape(-1, self._columns) for x in (scores, targets > 0))
        return torch.stack([_area(*each) for each in zip(scores.T, targets.T, strict=True)])


def _area(scores: Tensor, positive: Tensor) -> Tensor:
    higher, lower = scores[positive], scores[~positive].sort().values
    below = torch.searchsorted(lower, higher) + torch.searchsorted(lower, higher, right=True)
    return below.sum().cpu().double() / (2.0 * len(higher) * len(lower))


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
