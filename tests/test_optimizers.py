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


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm((1, 6))
        self.attention = nn.MultiheadAttention(6, 2)
        self.up, self.down = nn.Linear(6, 9), nn.Linear(9, 6)
        self.bias_table = nn.Parameter(torch.zeros(5, 2))


class LanguageModel(nn.Module):
    def __init__(self, tied: bool, head: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.kernel = nn.Conv1d(6, 6, 3)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.memory = nn.GRU(6, 6)
        if head:
            self.head = nn.Linear(6, 11)
            if tied:
                self.head.weight = self.embedding.weight


def _hidden(model: nn.Module, **options: Any) -> set[str]:
    names = {id(p): name for name, p in model.named_parameters()}
    muon, adamw = optimizers.muon(model, **options)
    held = [[p for g in each.param_groups for p in g["params"]] for each in (muon, adamw)]
    assert sorted(names) == sorted(id(p) for part in held for p in part)
    assert type(muon) is torch.optim.Muon
    assert type(adamw) is torch.optim.AdamW
    return {names[id(p)] for p in held[0]}


IN_BLOCKS = {
    f"blocks.{k}.{name}.weight" for k in (0, 1) for name in ("up", "down", "attention.out_proj")
} | {f"blocks.{k}.attention.in_proj_weight" for k in (0, 1)}
OF_MEMORY = {"memory.weight_ih_l0", "memory.weight_hh_l0"}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("head", [True, False])
def test_muon_has_the_hidden_matrices_and_adamw_the_rest(tied: bool, head: bool) -> None:
    assert _hidden(LanguageModel(tied, head)) == IN_BLOCKS | OF_MEMORY


def test_the_last_layer_of_a_perceptron_is_its_head() -> None:
    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    assert _hidden(model) == {"0.weight", "2.weight"}
    assert _hidden(model, adamw_modules=("0", "4")) == {"2.weight"}
    assert _hidden(model, adamw_modules=()) == {"0.weight", "2.weight", "4.weight"}


def test_what_is_frozen_is_in_neither() -> None:
    model = nn.Sequential(nn.Linear(2, 8), nn.Linear(8, 8), nn.Linear(8, 3))
    model[0].weight.requires_grad_(False)
    muon, adamw = optimizers.muon(model)
    assert [p.shape for p in muon.param_groups[0]["params"]] == [(8, 8)]
    assert not any(p is model[0].weight for g in adamw.param_groups for p in g["params"])


def test_muons_options_reach_both() -> None:
    model = nn.Sequential(nn.Linear(2, 8), nn.Linear(8, 3))
    muon, adamw = optimizers.muon(model, 0.02, adamw_lr=3e-4, weight_decay=0.2, betas=(0.8, 0.9))
    group = muon.param_groups[0]
    assert (group["lr"], group["weight_decay"], group["name"]) == (0.02, 0.2, "hidden")
    assert group["adjust_lr_fn"] == "match_rms_adamw"
    decay, no_decay = adamw.param_groups
    assert (decay["lr"], decay["weight_decay"], decay["betas"]) == (3e-4, 0.2, (0.8, 0.9))
    assert (no_decay["name"], no_decay["weight_decay"], no_decay["fused"]) == (
        "no_decay",
        0.0,
        True,
    )
    both = optimizers.by_name("muon", model, 1e-2, weight_decay=0.0)
    assert isinstance(both, list)
    assert [each.param_groups[0]["lr"] for each in both] == [1e-2, 1e-2]


def test_where_nothing_is_left_for_adamw_muon_is_alone() -> None:
    (muon,) = optimizers.muon(nn.Linear(3, 3, bias=False), adamw_modules=())
    assert type(muon) is torch.optim.Muon


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (nn.Linear(3, 3), {}, "no hidden matrix for Muon"),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.Linear(2, 2)), {}, "no convolution kernels"),
        ([nn.Parameter(torch.ones(2, 2))], {}, r"muon\(model, lr=1e-3\)"),
        (make_model(), {"adamw_modules": ("haed",)}, "adamw_modules names 'haed'"),
        (make_model(), {"adamw_modules": ("",)}, "adamw_modules names ''"),
        (make_model(), {"adamw_modules": "head"}, r"write adamw_modules=\('head',\)"),
        (make_model(), {"adjust_lr_fn": "none"}, "adjust_lr_fn"),
        (make_model(), {"ns_steps": 100}, "above 99"),
        (make_model(), {"ns_steps": 0}, "ns_steps"),
        (make_model(), {"momentum": 1.0}, "momentum"),
        (make_model(), {"adamw_lr": 0.0}, "adamw_lr"),
        (make_model(), {"lr": -1.0}, "lr"),
        (make_model(), {"weight_decay": -1.0}, "weight_decay"),
    ],
)
def test_what_muon_cannot_train(model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        optimizers.muon(model, **options)


def test_a_torch_without_muon_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.optim, "Muon")
    with pytest.raises(ConfigError, match=r"has no Muon: install torch 2.9 or newer"):
        optimizers.muon(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2)))


def test_the_text_models_embedding_and_head_are_adamws() -> None:
    from trueloop.tasks.text.transformer import Transformer, TransformerConfig

    for tied in (True, False):
        config = TransformerConfig(
            vocab_size=17, context=8, layers=2, width=8, heads=2, tied=tied, positions="learned"
        )
        held = _hidden(Transformer(config))
        assert len(held) == 14
        assert all(name.startswith("blocks.") for name in held)
