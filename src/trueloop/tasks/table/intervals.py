"""Prediction intervals of a regression: several quantiles of the target."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from trueloop.losses import QuantileLoss


class ScaledQuantileLoss(nn.Module):
    """Pinball loss in units of the training targets' standard deviation.

    With `log`, of the logarithms, whose quantiles are the logarithms of the quantiles. Outputs are
    float (rows, quantiles), targets float (rows,), in the target's own unit.
    """

    def __init__(self, quantiles: Sequence[float], scale: float, log: bool) -> None:
        super().__init__()
        self.pinball = QuantileLoss(quantiles=quantiles)
        self.scale = scale
        self.log = log

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        if self.log:
            outputs, targets = outputs.log(), targets.log()
        loss: Tensor = self.pinball(outputs / self.scale, targets / self.scale)
        return loss


def column_names(target: str, quantiles: Sequence[float]) -> list[str]:
    """The columns of the prediction file: `price_q05`, `price_q50`, `price_q97.5`."""
    names = []
    for quantile in quantiles:
        whole, dot, rest = f"{100 * quantile:.10g}".partition(".")
        names.append(f"{target}_q{whole:0>2}{dot}{rest}")
    return names
