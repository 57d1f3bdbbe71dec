"""Learning rates that fall towards the input: the groups, and training as a loop by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import trueloop
from bits import same
from trueloop import optimizers, schedules
from trueloop.errors import ConfigError

CRITERION = trueloop.supervised(nn.CrossEntropyLoss())


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.tanh(self.linear(self.norm(x)))


class Encoder(nn.Module):
    """As a vision transformer: parameters of its own and an embedding, blocks, a norm, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.position = nn.Parameter(torch.zeros(8))
        self.embed = nn.Linear(4, 8)
        self.blocks = nn.ModuleList([Block(), Block(), Block()])
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x) + self.position
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.head(self.norm(x))
        return out


class Stages(nn.Module):
    """As a residual network: stages of blocks, something between two of them, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.one = nn.Sequential(nn.Conv2d(4, 4, 3), nn.Conv2d(4, 4, 3))
        self.between = nn.BatchNorm2d(4)
        self.two = nn.Sequential(nn.Conv2d(4, 4, 3), nn.Conv2d(4, 4, 3))
        self.head = nn.Linear(4, 2)


def make_model() -> Encoder:
    torch.manual_seed(0)
    return Encoder()


def rates(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, float]:
    names = {p: name for name, p in model.named_parameters()}
    return {names[p]: g["lr"] for g in optimizer.param_groups for p in g["params"]}


def expected_layer(name: str) -> int:
    """As BEiT numbers them: the embedding 0, block i is i + 1, the head after the last block."""
    if name.startswith("blocks."):
        return int(name.split(".")[1]) + 1
    return 4 if name.startswith(("norm", "head")) else 0


def test_a_transformer_has_the_layers_of_beit() -> None:
    model = make_model()
    optimizer = optimizers.adamw(model, lr=0.1, weight_decay=0.05, layer_decay=0.5)
    found = rates(model, optimizer)
    assert found.keys() == dict(model.named_parameters()).keys()
    for name, rate in found.items():
        assert rate == 0.1 * 0.5 ** (4 - expected_layer(name)), name
    decays = {
        name: group["weight_decay"]
        for group in optimizer.param_groups
        for name, p in model.named_parameters()
        if any(p is one for one in group["params"])
    }
    for name, p in model.named_parameters():
        assert decays[name] == (0.05 if p.ndim > 1 else 0.0)
    names = [group["name"] for group in optimizer.param_groups]
    assert names[:3] == ["layer_0/decay", "layer_0/no_decay", "layer_1/decay"]


@pytest.mark.parametrize(
    ("model", "layers"),
    [
        (nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), [0, 0, 1, 1]),
        (Stages(), [0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4, 5, 5]),
        (nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.LSTM(2, 2)}), [0, 0, 1, 1, 1, 1]),
    ],
)
def test_other_models(model: nn.Module, layers: list[int]) -> None:
    optimizer = optimizers.sgd(model, lr=1.0, layer_decay=0.5)
    last = max(layers)
    assert list(rates(model, optimizer).values()) == [0.5 ** (last - layer) for layer in layers]


def test_layers_by_name() -> None:
    model = make_model()
    layers = ["embed", "blocks", "norm", "head"]
    with pytest.raises(ConfigError, match="contains the parameter 'position': name each module"):
        optimizers.adam(model, layer_decay=0.5, layers=layers)
    del model.position
    found = rates(model, optimizers.adam(model, 1.0, layer_decay=0.5, layers=layers))
    assert [found[f"{name}.weight"] for name in ("embed", "norm", "head")] == [0.125, 0.5, 1.0]
    assert found["blocks.0.linear.weight"] == found["blocks.2.linear.weight"] == 0.25


@pytest.mark.parametrize("make", [optimizers.adamw, optimizers.sgd])
def test_training_is_that_of_a_loop_by_hand(make: Any) -> None:
    """Under a schedule, which scales each group's own rate."""
    generator = torch.Generator().manual_seed(1)
    data = torch.randn(32, 4, generator=generator), torch.randint(3, (32,), generator=generator)
    train = trueloop.Feed(data, 8, shuffle=True)
    model, theirs = make_model(), make_model()
    step = trueloop.Step(
        model,
        make(model, lr=0.01, weight_decay=0.1, layer_decay=0.7),
        CRITERION,
        schedule=schedules.cosine(),
    )
    trueloop.fit(step, train, epochs=3)
    kind = type(step.optimizer)
    own = {"momentum": 0.9, "nesterov": True} if kind is torch.optim.SGD else {}
    groups = [
        {
            "params": [p],
            "lr": 0.01 * 0.7 ** (4 - expected_layer(name)),
            "weight_decay": 0.1 if p.ndim > 1 else 0.0,
        }
        for name, p in theirs.named_parameters()
    ]
    optimizer = kind(groups, fused=True, **own)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
    for epoch in range(3):
        for x, y in train.epoch(epoch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(theirs(x), y).backward()
            optimizer.step()
            schedule.step()
    assert same(model, theirs)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: optimizers.adamw(m, layer_decay=1.5), "layer_decay=1.5 must be from 0 to 1"),
        (lambda m: optimizers.adamw(m, layer_decay=0), "layer_decay=0 must be above 0"),
        (lambda m: optimizers.adamw(m, layers=["head"]), "layers is for layer_decay"),
        (
            lambda m: optimizers.adamw(m, layer_decay=0.5, layers=["heads"]),
            "layers names 'heads'.*did you mean 'head'",
        ),
        (lambda m: optimizers.adamw(m, layer_decay=0.5, layers="head"), "write them from input"),
        (
            lambda m: optimizers.adamw(m.parameters(), layer_decay=0.5),
            "layer_decay needs the model",
        ),
        (
            lambda m: optimizers.parameter_groups(m, 0.1, layer_decay=0.5),
            "layer_decay needs the learning rate: write parameter_groups",
        ),
        (
            lambda m: optimizers.by_name("muon", m, 0.1, weight_decay=0.0, layer_decay=0.5),
            "muon takes no layer_decay: choose adamw, adam or sgd",
        ),
    ],
)
def test_what_cannot_work_is_refused(call: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        call(make_model())
