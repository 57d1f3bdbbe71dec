"""The metrics of predicted quantiles: of the middle one, and of the outer interval."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from trueloop import _options
from trueloop.errors import LossError
from trueloop.metrics._base import double
from trueloop.metrics._functions import Combined, Functions
from trueloop.metrics._sets import Regression


def middle(quantiles: Sequence[float]) -> int:
    """The index of the quantile that serves as the prediction: the one nearest to the median."""
    return min(range(len(quantiles)), key=lambda k: abs(quantiles[k] - 0.5))


class QuantileScores(Combined):
    """Outputs (N, Q), targets (N,) or (N, 1): the scores of a regression for the middle quantile;
    `coverage`, the share of targets from the first quantile to the last, ends included; and
    `width`, the mean distance of these two."""

    def __init__(self, quantiles: Sequence[float]) -> None:
        self._quantiles = _options.quantiles("quantiles", quantiles, least=2)
        super().__init__([Regression(), Functions({"coverage": _covered, "width": _width})])

    @torch.no_grad()
    def update(self, outputs: Tensor, targets: Tensor) -> None:
        count = len(self._quantiles)
        if outputs.ndim != 2 or outputs.shape[1] != count or targets.numel() != len(outputs):
            raise LossError(
                f"quantile metrics: outputs {tuple(outputs.shape)} against targets "
                f"{tuple(targets.shape)}: they must be (N, {count}) and (N,)"
            )
        targets = targets.reshape(-1)
        point, interval = self._sets
        point.update(outputs[:, middle(self._quantiles)], targets)
        interval.update(outputs, targets)


def _covered(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs[:, 0] <= targets) & (targets <= outputs[:, -1])


def _width(outputs: Tensor, targets: Tensor) -> Tensor:
    return double(outputs[:, -1]) - double(outputs[:, 0])
