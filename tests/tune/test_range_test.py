"""The learning-rate range test against what is known: a quadratic's largest stable rate, curves
made by hand, and digits trained at the rate that it suggests."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import trueloop
from trueloop.tasks.digits import Digits
from trueloop.tune.range_test import conclude, smooth, sweep
from trueloop.tune.setup import Setup


class Quadratic(nn.Module):
    """Half the sum of h·w², whose gradient descent is stable below a rate of 2 / max h."""

    def __init__(self, curvatures: list[float]) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(len(curvatures), dtype=torch.float64))
        self.register_buffer("h", torch.tensor(curvatures, dtype=torch.float64))

    def forward(self, _: Tensor) -> Tensor:
        assert isinstance(self.h, Tensor)
        return 0.5 * (self.h * self.w**2).sum()


def quadratic(curvatures: list[float], momentum: float = 0.0) -> Setup:
    model = Quadratic(curvatures)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=momentum)
    step = trueloop.Step(model, optimizer, lambda model, batch: model(batch))
    feed = trueloop.Feed(torch.zeros(64, 1), 8)
    return Setup(step=step, train=feed, val=feed, device=torch.device("cpu"), threads=1)


@pytest.mark.parametrize("curvature", [0.05, 1.0, 300.0])
@pytest.mark.parametrize("smallest", [1.0, 0.01])
def test_quadratic_diverges_past_two_over_the_curvature(curvature: float, smallest: float) -> None:
    stable = 2 / curvature
    found = sweep(
        quadratic([curvature, curvature * smallest]),
        updates=200,
        lowest=stable * 1e-5,
        highest=stable * 1e3,
    )
    assert found.ended == "diverged"
    assert found.diverged_at is not None
    assert stable < found.diverged_at < 30 * stable
    assert found.suggestion is not None
    assert stable / 200 < found.suggestion.rate < stable
    assert found.suggestion.lowest < 3 * stable


def test_groups_keep_their_proportion_and_rates_are_swept_exponentially() -> None:
    setup = quadratic([1.0])
    group = setup.step.optimizers[0].param_groups[0]
    group["lr"] = 0.5
    seen = []
    update = setup.update

    def watched() -> object:
        seen.append(group["lr"])
        return update()

    setup.update = watched  # type: ignore[method-assign, assignment]
    found = sweep(setup, updates=50, lowest=1e-6, highest=1e-2)
    assert np.allclose(seen, np.geomspace(1e-6, 1e-2, 50))
    assert found.rates == pytest.approx(seen)
    assert found.ended == "swept"


def curve(fall_at: float, rise_at: float, noise: float = 0.0) -> tuple[list[float], list[float]]:
    """A loss that falls from 2.3 to 0.3 around one rate and rises from another one on."""
    rates = np.geomspace(1e-6, 10, 150)
    x = np.log10(rates)
    y = 2.3 - 2 / (1 + np.exp(-6 * (x - np.log10(fall_at))))
    y += np.maximum(0, x - np.log10(rise_at)) ** 2 * 20
    y += noise * np.random.default_rng(0).standard_normal(len(x))
    return rates.tolist(), y.tolist()


@pytest.mark.parametrize("fall_at", [1e-4, 3e-3, 0.05])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_suggests_where_the_loss_falls_fastest(fall_at: float, noise: float) -> None:
    found = conclude(*curve(fall_at, 4 * fall_at, noise), "diverged")
    assert found.suggestion is not None
    assert found.suggestion.rate == pytest.approx(fall_at, rel=0.5)
    assert "falls fastest" in found.reason


def test_a_fall_long_before_the_lowest_loss_is_too_early() -> None:
    found = conclude(*curve(1e-4, 1e-1), "diverged")
    assert found.suggestion is not None
    assert found.suggestion.rate == pytest.approx(found.suggestion.lowest / 10, rel=0.05)
    assert "a tenth of" in found.reason


def test_a_steep_end_is_kept_away_from() -> None:
    """A fall right before the rise: the suggestion is a third of the rate with the lowest loss."""
    found = conclude(*curve(1e-2, 1.2e-2), "diverged")
    assert found.suggestion is not None
    assert found.suggestion.rate == pytest.approx(found.suggestion.lowest / 3, rel=0.05)
    assert "a third of" in found.reason


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ([1.0] * 100, "fell nowhere"),
        ((1 + 0.3 * np.random.default_rng(1).standard_normal(100)).tolist(), "fell nowhere"),
        (np.linspace(1, 5, 100).tolist(), "fell nowhere"),
        ([2.0, 1.0, math.nan], "3 updates only"),
    ],
)
def test_suggests_nothing_without_a_fall(losses: list[float], words: str) -> None:
    found = conclude(np.geomspace(1e-6, 1, len(losses)).tolist(), losses, "swept")
    assert found.suggestion is None
    assert words in found.reason


def test_smoothing_is_the_local_mean_and_passes_over_what_is_not_finite() -> None:
    x = np.linspace(-6, 0, 61)
    y = 3 * x + 1
    assert np.allclose(smooth(x, y)[10:-10], y[10:-10], atol=1e-6)  # a line stays one
    y[-1] = np.nan
    assert np.isfinite(smooth(x, y)).all()


def digits(rate: float) -> Setup:
    torch.manual_seed(0)
    task = Digits()
    splits = task.splits()
    model = task.model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    return Setup(
        step=trueloop.Step(model, optimizer, task.loss_fn(), clip_norm=1.0),
        train=trueloop.Feed(splits.train, 64, shuffle=True),
        val=trueloop.Feed(splits.val, 64),
        device=torch.device("cpu"),
        threads=1,
    )


def loss_after(rate: float, updates: int) -> float:
    """Mean loss of the last of so many updates at a constant rate."""
    setup = digits(rate)
    losses = [float(setup.update().loss) for _ in range(updates)]
    return float(np.nan_to_num(np.mean(losses[-8:]), nan=1e9))


def test_digits_learn_faster_at_the_suggested_rate_than_far_from_it() -> None:
    found = sweep(digits(1e-3), updates=60)
    assert found.suggestion is not None
    suggested = loss_after(found.suggestion.rate, 25)
    assert suggested < 0.5 * loss_after(found.suggestion.rate / 30, 25)
    assert suggested < 0.5 * loss_after(found.suggestion.rate * 300, 25)
