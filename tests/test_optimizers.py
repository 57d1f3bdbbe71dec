"""Parameter groups decay what should decay; the fused implementation is used where it exists."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from trueloop import optimizers
from trueloop.errors import ConfigError


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Embedding(5, 4),
        nn.Conv1d(4, 4, 1),
        nn.BatchNorm1d(4),
        nn.LayerNorm((4, 3)),  # two-dimensional gain: a norm all the same
        nn.GroupNorm(2, 4),
        nn.RMSNorm(3),
        nn.Linear(3, 2),
    )


def test_matrices_decay_and_biases_and_norms_do_not() -> None:
    model = make_model()
    groups = optimizers.parameter_groups(model, 0.1)
    names = {id(p): name for name, p in model.named_parameters()}
    by_decay = {g["weight_decay"]: {names[id(p)] for p in g["params"]} for g in groups}
    assert by_decay[0.1] == {"0.weight", "1.weight", "6.weight"}
    assert by_decay[0.0] == set(names.values()) - by_decay[0.1]


def test_frozen_and_tied_parameters_appear_not_or_once() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    model[0].bias.requires_grad_(False)
    groups = optimizers.parameter_groups(model, 0.1)
    held = [p for g in groups for p in g["params"]]
    assert len(held) == 2
    assert not any(p is model[0].bias for p in held)


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd"])
def test_one_group_without_decay_and_fused_on_the_cpu(name: str) -> None:
    optimizer = optimizers.by_name(name, make_model(), 1e-3, weight_decay=0.0)
    assert len(optimizer.param_groups) == 1
    assert optimizer.param_groups[0]["fused"] is True


def test_no_fused_implementation_is_no_error() -> None:
    parameters = [nn.Parameter(torch.ones(2, dtype=torch.complex64))]
    optimizer = optimizers.adamw(parameters, 1e-3)
    parameters[0].grad = torch.ones_like(parameters[0])
    optimizer.step()
    assert not torch.equal(parameters[0], torch.ones(2, dtype=torch.complex64))


def test_decay_acts_on_its_group_alone() -> None:
    model = nn.Linear(3, 3)
    before = model.weight.detach().clone(), model.bias.detach().clone()
    optimizer = optimizers.adamw(model, lr=0.1, weight_decay=0.5)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    torch.testing.assert_close(model.weight, before[0] * (1 - 0.1 * 0.5))
    assert torch.equal(model.bias, before[1])


def test_sgd_without_momentum_is_not_asked_for_nesterov() -> None:
    assert optimizers.sgd(nn.Linear(1, 1), momentum=0.0).param_groups[0]["nesterov"] is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 0.0}, "lr=0"),
        ({"lr": -1e-3}, "lr=-0.001"),
        ({"lr": math.nan}, "lr=nan"),
        ({"lr": math.inf}, "lr=inf"),
        ({"lr": "fast"}, "lr='fast'"),
        ({"weight_decay": -0.1}, "weight_decay"),
        ({"weight_decay": math.nan}, "weight_decay"),
    ],
)
def test_values_that_cannot_train(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        optimizers.adamw(nn.Linear(1, 1), **options)


def test_a_model_without_trainable_parameters_and_an_unknown_name() -> None:
    with pytest.raises(ConfigError, match="no trainable parameter"):
        optimizers.adam(nn.Linear(1, 1).requires_grad_(False))
    with pytest.raises(ConfigError, match=r"did you mean .*'adamw'"):
        optimizers.by_name("adamvv", nn.Linear(1, 1), 1e-3, weight_decay=0.0)


def test_sparse_gradients_can_be_trained() -> None:
    """No fused implementation takes them, which torch says at the first step only."""
    embedding = nn.Embedding(10, 4, sparse=True)
    optimizer = optimizers.sgd(embedding, 0.1)
    embedding(torch.tensor([1, 2, 2])).square().sum().backward()
    before = embedding.weight.detach().clone()
    optimizer.step()
    assert (embedding.weight != before).any(dim=1).tolist() == [k in (1, 2) for k in range(10)]
