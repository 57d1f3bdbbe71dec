"""LoRA: the frozen model with small matrices beside it, and the same model once they are merged."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import trueloop
from on_ranks import on_ranks
from trueloop import lora, optimizers
from trueloop.errors import ConfigError, RunError


class Block(nn.Module):
    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.value = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 3 * width)
        self.down = nn.Linear(3 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + torch.tanh(self.query(x)) * self.value(x)
        return x + self.down(F.gelu(self.up(x)))


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 12)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(12, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(x)
        return logits


def network(seed: int = 0) -> Network:
    torch.manual_seed(seed)
    return Network()


def tokens(count: int = 6) -> Tensor:
    return torch.randint(0, 11, (count, 5), generator=torch.Generator().manual_seed(1))


def loss_fn(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return F.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())


def train(model: nn.Module, updates: int = 4, lr: float = 1e-2) -> trueloop.Step:
    step = trueloop.Step(model, optimizers.adamw(model, lr=lr), loss_fn)
    for _ in range(updates):
        step((tokens(), tokens().roll(1, 1)))
    return step


def test_the_adapted_model_begins_as_the_model_and_trains_its_matrices_alone() -> None:
    model = network()
    plain, before = model(tokens()), copy.deepcopy(model.state_dict())
    assert lora.apply(model, ["query", "value"], rank=2) is model
    assert torch.equal(model(tokens()), plain)
    trainable = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trainable == {
        f"blocks.{k}.{layer}.lora_{part}"
        for k in (0, 1)
        for layer in ("query", "value")
        for part in "ab"
    }
    step = train(model)
    held = {id(p) for group in step.optimizer.param_groups for p in group["params"]}
    assert held == {id(p) for p in model.parameters() if p.requires_grad}
    # Two moments per trained number, and nothing for the others.
    moments = sum(
        part.numel()
        for state in step.optimizer.state.values()
        for part in state.values()
        if isinstance(part, Tensor) and part.ndim
    )
    assert moments == 2 * 4 * 2 * (12 + 12)
    assert not torch.equal(model(tokens()), plain)
    for name, value in model.state_dict().items():
        if "lora" not in name:
            assert torch.equal(value, before[name.replace(".base.", ".")]), name


def test_the_update_is_that_of_the_formula() -> None:
    """Against float64 and autograd on W + alpha / rank · B A."""
    torch.manual_seed(0)
    base = nn.Linear(5, 4).double()
    layer = lora.LoRALinear(base, rank=3, alpha=6.0)
    with torch.no_grad():
        layer.lora_b.normal_()
    a, b = (p.detach().clone().requires_grad_() for p in (layer.lora_a, layer.lora_b))
    x = torch.randn(2, 7, 5, dtype=torch.float64)
    expected = F.linear(x, base.weight + 6.0 / 3 * (b @ a), base.bias)
    torch.testing.assert_close(layer(x), expected)
    torch.testing.assert_close(layer.weight, base.weight + 2.0 * (b @ a))
    layer(x).square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(layer.lora_a.grad, a.grad)
    torch.testing.assert_close(layer.lora_b.grad, b.grad)


def test_a_is_drawn_as_a_linear_layers_weight_is_and_b_is_zero() -> None:
    base = nn.Linear(40, 30)
    torch.manual_seed(3)
    layer = lora.LoRALinear(base, rank=7)
    torch.manual_seed(3)
    assert torch.equal(layer.lora_a, nn.Linear(40, 7, bias=False).weight)
    assert not layer.lora_b.any()


@settings(max_examples=30, deadline=None)
@given(
    rank=st.integers(1, 12), alpha=st.floats(0.1, 64), seed=st.integers(0, 99), half=st.booleans()
)
def test_the_merged_model_computes_what_the_adapted_one_did(
    rank: int, alpha: float, seed: int, half: bool
) -> None:
    model = network(seed).eval()
    if half:
        model = model.bfloat16()
    names = set(model.state_dict())
    layers = ["query", "value", "up", "down"]
    lora.apply(model, layers, rank=rank, alpha=alpha, dropout=0.5)
    with torch.no_grad():
        for layer in lora.adapters(model).values():
            layer.lora_b.normal_(std=0.02)
        unmerged = model(tokens())
        assert lora.merge(model) is model
        merged = model(tokens())
    assert set(model.state_dict()) == names
    assert type(model.blocks[0].query) is nn.Linear  # type: ignore[union-attr]
    assert model.head.weight is model.embedding.weight
    if half:
        assert merged.dtype == torch.bfloat16
    else:
        torch.testing.assert_close(merged, unmerged, rtol=1e-5, atol=1e-5)


def test_half_precision_has_matrices_of_float32() -> None:
    model = lora.apply(network().bfloat16(), ["query"])
    assert {p.dtype for p in model.parameters() if p.requires_grad} == {torch.float32}
    train(model)
    assert model(tokens()).dtype == torch.bfloat16


def test_a_layer_whose_weight_is_read_instead_of_called_is_adapted_all_the_same() -> None:
    """torch's attention reads out_proj.weight, and its encoder layer linear1.weight in eval mode:
    as plain attributes these would have left the matrices out, without a word."""
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    lora.apply(model, ["linear1", "linear2", "out_proj"], rank=2)
    with torch.no_grad():
        for layer in lora.adapters(model).values():
            layer.lora_b.normal_()
    x = torch.randn(3, 5, 8)
    in_training = model(x)
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(x), in_training, rtol=1e-5, atol=1e-5)
    in_training.sum().backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)


def test_dropout_acts_on_the_matrices_alone_and_not_in_eval_mode() -> None:
    torch.manual_seed(0)
    layer = lora.LoRALinear(nn.Linear(6, 6), rank=2, dropout=0.5)
    x = torch.randn(4, 6)
    assert torch.equal(layer(x), layer.base(x))  # B is zero
    with torch.no_grad():
        layer.lora_b.normal_()
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_a_layer_at_two_places_is_one_adapted_layer() -> None:
    shared = nn.Linear(4, 4)
    model = lora.apply(nn.Sequential(shared, nn.Tanh(), shared), ["0"], rank=2)
    assert model[0] is model[2]
    assert isinstance(model[0], lora.LoRALinear)
    lora.merge(model)
    assert model[0] is model[2] is shared


def test_names_and_patterns_choose_the_layers() -> None:
    by_end = lora.apply(network(), ["blocks.1.up", "value"])
    assert list(lora.adapters(by_end)) == ["blocks.0.value", "blocks.1.value", "blocks.1.up"]
    by_pattern = lora.apply(network(), re.compile(r"1\.(query|down)$"))
    assert list(lora.adapters(by_pattern)) == ["blocks.1.query", "blocks.1.down"]
    assert list(lora.adapters(lora.apply(network(), "query"))) == [
        "blocks.0.query",
        "blocks.1.query",
    ]


@pytest.mark.parametrize("has_adapters", [False, True])
def test_the_adapters_alone_are_saved_and_loaded(tmp_path: Path, has_adapters: bool) -> None:
    model = lora.apply(network(), ["query"], rank=2, alpha=5.0)
    train(model)
    path = lora.save(model, tmp_path / "style.safetensors")
    assert path.stat().st_size < 4000
    state = lora.state_dict(model)
    assert {name.rpartition(".")[2] for name in state} == {"lora_a", "lora_b", "alpha"}
    other = network()
    if has_adapters:
        lora.apply(other, ["query"], rank=2, alpha=5.0)
    lora.load(other, path)
    assert torch.equal(other(tokens()), model(tokens()))
    assert {n for n, p in other.named_parameters() if p.requires_grad} == {
        n for n, p in model.named_parameters() if p.requires_grad
    }


def _changed(state: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {**state, **{f"blocks.0.query.{name}": value for name, value in values.items()}}


def test_adapters_that_do_not_fit_are_refused_and_change_nothing() -> None:
    model = lora.apply(network(), ["query"], rank=2)
    state = lora.state_dict(model)
    plain = network()
    before = list(plain.state_dict())
    for wrong, message in (
        ({}, "not LoRA adapters"),
        ({"blocks.0.query.weight": torch.ones(1)}, "blocks.0.query.alpha is missing"),
        (_changed(state, lora_a=torch.ones(2, 13)), r"shape \(2, 13\).* needs \(2, 12\)"),
        (_changed(state, lora_a=torch.ones(0, 12)), r"shape \(0, 12\)"),
        (_changed(state, alpha=torch.ones(2)), "not one number"),
        ({n.replace("query", "kwery"): t for n, t in state.items()}, "no layer 'blocks.0.kwery'"),
    ):
        with pytest.raises(RunError, match=message):
            lora.load_state_dict(plain, wrong)
        assert list(plain.state_dict()) == before
    with pytest.raises(RunError, match="rank 2, alpha 16, and they have rank 3, alpha 16"):
        lora.load_state_dict(model, lora.state_dict(lora.apply(network(), ["query"], rank=3)))


def test_the_file_of_adapters_may_be_damaged(tmp_path: Path) -> None:
    path = lora.save(lora.apply(network(), ["query"]), tmp_path / "a.safetensors")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(RunError, match="damaged"):
        lora.load(network(), path)
    with pytest.raises(RunError, match="no weights at"):
        lora.load(network(), tmp_path / "none.safetensors")


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (["qery"], "called 'qery': did you mean 'query'"),
        ([], r"modules=\[\] names no layers"),
        (3, "modules=3 names no layers"),
        ([3], "modules=3 is not a name"),
        (["embedding"], "'embedding' is an Embedding, and LoRA adapts nn.Linear"),
        (["head"], "head.weight is tied to a different layer's"),
        (re.compile("xyz"), "no nn.Linear of the model has 'xyz' in its name"),
    ],
)
def test_what_cannot_be_adapted_is_named(modules: Any, message: str) -> None:
    model = network()
    with pytest.raises(ConfigError, match=message):
        lora.apply(model, modules)
    assert all(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank=0"),
        ({"rank": 13}, r"rank=13 is more than blocks.0.query.weight has.*write rank=8"),
        ({"alpha": 0}, "alpha=0 must be above 0"),
        ({"dropout": 1}, "dropout=1 must be from 0 to below 1"),
    ],
)
def test_options_that_cannot_work_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        lora.apply(network(), ["query"], **options)


def test_other_misuse_is_one_line() -> None:
    with pytest.raises(ConfigError, match="no LoRA adapters"):
        lora.save(network(), "x.safetensors")
    with pytest.raises(ConfigError, match="adapters already: merge them first"):
        lora.apply(lora.apply(network(), ["query"]), ["value"])
    with pytest.raises(ConfigError, match="contains none"):
        lora.apply(nn.Linear(3, 3), ["weight"])
    with pytest.raises(ConfigError, match=r"must be a torch\.nn\.Module"):
        lora.merge(3)  # type: ignore[type-var]
    with pytest.raises(ConfigError, match="no shape yet"):
        lora.apply(nn.Sequential(nn.LazyLinear(3)), ["0"])


def _trained_on_a_rank(parallel: str) -> tuple[dict[str, list[Any]], str]:
    """The adapters after three updates, and why they are not merged here, if they are not."""
    from trueloop import ranks

    model = lora.apply(network(), ["query", "up"], rank=2)
    optimizer = optimizers.sgd(model, lr=0.01, momentum=0.0)
    step = trueloop.Step(model, optimizer, loss_fn, parallel=parallel)
    share = 6 // ranks.world_size()
    here = slice(ranks.rank() * share, (ranks.rank() + 1) * share)
    for _ in range(3):
        step((tokens()[here], tokens().roll(1, 1)[here]))
    assert not any(p.grad is not None for p in step.model.parameters() if not p.requires_grad)
    state = {
        name: (value.full_tensor() if hasattr(value, "full_tensor") else value).tolist()
        for name, value in lora.state_dict(step.model).items()
    }
    try:
        lora.merge(step.model)
    except ConfigError as error:
        return state, str(error)
    return state, ""


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_two_ranks_train_the_matrices_as_one_process_does(parallel: str) -> None:
    alone = _trained_on_a_rank("ddp")[0]
    for together, refusal in on_ranks(2, _trained_on_a_rank, parallel):
        for name, value in alone.items():
            torch.testing.assert_close(
                torch.tensor(together[name]), torch.tensor(value), rtol=1e-5, atol=1e-6
            )
        assert refusal.startswith("the model is sharded" if parallel == "fsdp" else "")
        assert bool(refusal) == (parallel == "fsdp")
