"""A race: the rate that learns wins it, one that diverges has no result, and a validation loss is
the one of `evaluate`."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import trueloop
from trueloop.tune.race import race, validation_loss
from trueloop.tune.setup import Setup


def setup(rate: float) -> Setup:
    torch.manual_seed(0)
    x = torch.randn(512, 8)
    y = x @ torch.arange(8.0)[:, None]
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    loss_fn = trueloop.supervised(nn.functional.mse_loss)
    return Setup(
        step=trueloop.Step(model, optimizer, loss_fn),
        train=trueloop.Feed((x, y), 32, shuffle=True),
        val=trueloop.Feed((x[:100], y[:100]), 32),
        device=torch.device("cpu"),
        threads=1,
    )


def test_the_rate_that_learns_wins() -> None:
    slow, good = race(setup(1e-6), 0.2), race(setup(0.2), 0.2)
    assert good.loss < 0.01 * slow.loss
    assert good.updates > 5
    assert good.samples == pytest.approx(32 * good.updates)


def test_one_that_diverges_has_no_loss() -> None:
    assert math.isnan(race(setup(100.0), 0.5).loss)


def test_the_validation_loss_is_that_of_evaluate() -> None:
    raced = setup(0.01)
    step = raced.step
    scores = trueloop.evaluate(step.model, raced.val, step.loss_fn).scores
    assert validation_loss(raced) == pytest.approx(scores["loss"], rel=1e-6)
