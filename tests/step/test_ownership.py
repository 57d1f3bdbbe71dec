"""Parameters that get a gradient and are trained by nobody."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import trueloop
from trueloop.errors import ConfigError


@pytest.fixture(autouse=True)
def no_steps_of_earlier_tests() -> None:
    gc.collect()


def make_model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))


def loss_fn(model: nn.Module, batch: Tensor) -> Tensor:
    return model(batch).square().mean()  # type: ignore[no-any-return]


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_layer_replaced_after_the_optimizer_was_made_is_named(accumulate: int) -> None:
    model = make_model()
    optimizer = sgd(model.parameters())
    model[2] = nn.Linear(4, 1)
    step = trueloop.Step(model, optimizer, loss_fn, accumulate=accumulate)
    before = [p.detach().clone() for p in model.parameters()]
    for _ in range(accumulate - 1):
        step(torch.ones(3, 2))
    with pytest.raises(ConfigError) as e:
        step(torch.ones(3, 2))
    message = str(e.value)
    assert "2.weight, 2.bias" in message
    assert "has 2 parameters outside the model" in message
    assert "model.parameters()" in message
    assert "requires_grad_(False)" in message
    assert "\n" not in message
    for a, b in zip(before, model.parameters(), strict=True):
        assert torch.equal(a, b), "nothing was applied"


def test_an_optimizer_of_one_part_of_the_model_is_refused_unless_the_rest_is_frozen() -> None:
    model = make_model()
    step = trueloop.Step(model, sgd(model[2].parameters()), loss_fn)
    with pytest.raises(ConfigError, match=r"0\.weight, 0\.bias.*does not have them"):
        step(torch.ones(3, 2))
    model = make_model()
    model[0].requires_grad_(False)
    assert trueloop.Step(model, sgd(model[2].parameters()), loss_fn)(torch.ones(3, 2)).updated


def test_an_optimizer_that_holds_half_of_another_model_is_refused() -> None:
    model, other = make_model(), make_model()
    step = trueloop.Step(model, sgd([*model.parameters(), *other[0].parameters()]), loss_fn)
    with pytest.raises(ConfigError, match=r"has 2 parameters outside the model.*\(4, 2\), \(4,\)"):
        step(torch.ones(3, 2))


def test_parameters_of_the_loss_belong_to_the_optimizer_as_well() -> None:
    model, scale = make_model(), nn.Parameter(torch.ones(()))
    step = trueloop.Step(
        model, sgd([*model.parameters(), scale]), lambda m, b: loss_fn(m, b) * scale
    )
    assert step(torch.ones(3, 2)).updated


class Pair(nn.Module):
    """A generator and a critic in one module."""

    def __init__(self) -> None:
        super().__init__()
        self.generator, self.critic = nn.Linear(2, 2), nn.Linear(2, 1)


def test_what_another_step_trains_is_its_own() -> None:
    pair = Pair()
    forge = trueloop.Step(
        pair, sgd(pair.generator.parameters()), lambda m, b: -m.critic(m.generator(b)).mean()
    )
    judge = trueloop.Step(
        pair, sgd(pair.critic.parameters()), lambda m, b: m.critic(m.generator(b)).mean()
    )
    for _ in range(3):
        assert forge(torch.ones(3, 2)).updated
        assert judge(torch.ones(3, 2)).updated


def test_a_branch_that_is_not_used_yet_is_not_a_mistake() -> None:
    model = make_model()
    model.add_module("later", nn.Linear(4, 1))
    step = trueloop.Step(model, sgd(model.parameters()), lambda m, b: m[2](m[0](b)).mean())
    assert step(torch.ones(3, 2)).updated


def test_gradients_that_somebody_else_left_are_not_of_this_update() -> None:
    model = make_model()
    loss_fn(model, torch.ones(3, 2)).backward()  # type: ignore[no-untyped-call]
    step = trueloop.Step(
        model, sgd(model[2].parameters()), lambda m, b: m[2](m[0](b).detach()).mean()
    )
    assert step(torch.ones(3, 2)).updated
