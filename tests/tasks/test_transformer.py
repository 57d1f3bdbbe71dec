"""The transformer of the text task against transformers' own GPT-2 and Llama, and its laws."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trueloop.errors import ConfigError
from trueloop.step.materialise import Materialiser
from trueloop.tasks.text.transformer import (
    Transformer,
    attend,
    pack_by_mask,
    pack_by_offsets,
    positions_in_documents,
)
from trueloop.tasks.text.transformer_config import PRESETS, TransformerConfig, preset

SMALL: dict[str, Any] = {"vocab_size": 37, "context": 24, "layers": 2, "width": 32, "heads": 4}
GPT2 = {"norm": "layer", "positions": "learned", "activation": "gelu_tanh", "bias": True}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}


def model_of(seed: int = 0, **changes: Any) -> Transformer:
    """Of weights large enough for every part to count."""
    torch.manual_seed(seed)
    model = Transformer(TransformerConfig(**{**SMALL, **changes}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def tokens_of(batch: int = 3, length: int = 24, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(SMALL["vocab_size"], (batch, length), generator=generator)


def attention_weights(model: Transformer, x: Tensor, layer: int) -> Tensor:
    """Slowly: one head, one query at a time, in float64, with complex numbers that turn."""
    config, attention = model.config, model.blocks[layer].attention
    assert isinstance(attention, nn.Module)
    size, length = config.features_per_head, x.shape[0]
    share = config.heads // config.n_kv_heads

    def project(linear: nn.Linear, head: int, norm: nn.Module | None) -> Tensor:
        rows = slice(head * size, head * size + size)
        y = x @ linear.weight[rows].T
        y = y if linear.bias is None else y + linear.bias[rows]
        if norm is not None:
            y = y / (y.pow(2).mean(-1, keepdim=True) + config.norm_eps).sqrt() * norm.weight
        return y

    def turned(y: Tensor) -> Tensor:
        if config.positions == "learned":
            return y
        pairs = torch.complex(y[:, : size // 2], y[:, size // 2 :])
        angles = torch.tensor(
            [
                [p * config.rotary_base ** (-2 * i / size) for i in range(size // 2)]
                for p in range(length)
            ],
            dtype=torch.float64,
        )
        pairs = pairs * torch.polar(torch.ones_like(angles), angles)
        return torch.cat((pairs.real, pairs.imag), dim=-1)

    heads = []
    for head in range(config.heads):
        norms = (attention.query_norm, attention.key_norm) if config.qk_norm else (None, None)
        q = turned(project(attention.query, head, norms[0]))
        k = turned(project(attention.key, head // share, norms[1]))
        v = project(attention.value, head // share, None)
        rows = []
        for t in range(length):
            weights = torch.softmax((k[: t + 1] @ q[t]) / math.sqrt(size), dim=0)
            rows.append(weights @ v[: t + 1])
        heads.append(torch.stack(rows))
    output = torch.cat(heads, dim=-1) @ attention.output.weight.T
    return output if attention.output.bias is None else output + attention.output.bias


def slow_logits(model: Transformer, tokens: Tensor) -> Tensor:
    """(length, vocab_size) of one sequence, by the formulas of the papers."""
    config = model.config

    def norm(module: nn.Module, x: Tensor) -> Tensor:
        if config.norm == "layer":
            x = x - x.mean(-1, keepdim=True)
        y = x / (x.pow(2).mean(-1, keepdim=True) + config.norm_eps).sqrt() * module.weight
        return y + module.bias if getattr(module, "bias", None) is not None else y

    x = model.embedding.weight[tokens]
    if config.positions == "learned":
        x = x + model.position_embedding.weight[: len(tokens)]
    for layer, block in enumerate(model.blocks):
        x = x + attention_weights(model, norm(block.attention_norm, x), layer)
        h, mlp = norm(block.mlp_norm, x), block.mlp
        up = mlp.up(h)
        if config.activation == "swiglu":
            gate = mlp.gate(h)
            up = gate / (1 + torch.exp(-gate)) * up
        elif config.activation == "relu2":
            up = torch.where(up > 0, up * up, 0)
        elif config.activation == "gelu":
            up = up * 0.5 * (1 + torch.erf(up / math.sqrt(2)))
        else:
            inner = math.sqrt(2 / math.pi) * (up + 0.044715 * up**3)
            up = 0.5 * up * (1 + torch.tanh(inner))
        x = x + mlp.down(up)
    return norm(model.final_norm, x) @ model.head.weight.T


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kv_heads": 2, "qk_norm": True, "activation": "relu2", "tied": False},
        {"kv_heads": 1, "head_width": 6, "norm": "layer", "activation": "gelu", "hidden": 50},
        GPT2,
        {"bias": True, "attention_bias": False, "rotary_base": 500.0, "norm": "layer"},
    ],
)
def test_it_computes_what_the_papers_say(changes: dict[str, Any]) -> None:
    model = model_of(**changes).double()
    tokens = tokens_of(batch=2)
    with torch.no_grad():
        expected = torch.stack([slow_logits(model, row) for row in tokens])
        # The angles of rotary positions are float32, as in the published models.
        assert torch.allclose(model(tokens), expected, rtol=1e-5, atol=1e-5)


def test_gpt2_of_transformers_gives_the_same_logits() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    other = GPT2LMHeadModel(
        GPT2Config(vocab_size=37, n_positions=24, n_embd=32, n_layer=2, n_head=4)
    ).eval()
    model = model_of(**GPT2)
    state = other.transformer.state_dict()
    with torch.no_grad():
        model.embedding.weight.copy_(state["wte.weight"])
        model.position_embedding.weight.copy_(state["wpe.weight"])
        for k, block in enumerate(model.blocks):
            fused = state[f"h.{k}.attn.c_attn.weight"].T.chunk(3)
            biases = state[f"h.{k}.attn.c_attn.bias"].chunk(3)
            a = block.attention
            for linear, weight, bias in zip((a.query, a.key, a.value), fused, biases, strict=True):
                linear.weight.copy_(weight)
                linear.bias.copy_(bias)
            for name, linear in (
                ("attn.c_proj", a.output),
                ("mlp.c_fc", block.mlp.up),
                ("mlp.c_proj", block.mlp.down),
            ):
                linear.weight.copy_(state[f"h.{k}.{name}.weight"].T)
                linear.bias.copy_(state[f"h.{k}.{name}.bias"])
            for name, norm in (("ln_1", block.attention_norm), ("ln_2", block.mlp_norm)):
                norm.weight.copy_(state[f"h.{k}.{name}.weight"])
                norm.bias.copy_(state[f"h.{k}.{name}.bias"])
        model.final_norm.weight.copy_(state["ln_f.weight"])
        model.final_norm.bias.copy_(state["ln_f.bias"])
        tokens = tokens_of()
        assert torch.allclose(model(tokens), other(tokens).logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize("scaling", [None, LLAMA3, {"rope_type": "linear", "factor": 2.0}])
def test_llama_of_transformers_gives_the_same_logits(scaling: dict[str, Any] | None) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    rope = {"rope_theta": 10000.0, **(scaling or {"rope_type": "default"})}
    other = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=37, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=24,
            rms_norm_eps=1e-6, rope_parameters=rope, initializer_range=0.3,
        )
    ).eval()  # fmt: skip
    model = model_of(kv_heads=2, hidden=48, norm_eps=1e-6, tied=False, rotary_scaling=scaling)
    names = {
        "attention.query": "self_attn.q_proj", "attention.key": "self_attn.k_proj",
        "attention.value": "self_attn.v_proj", "attention.output": "self_attn.o_proj",
        "mlp.up": "mlp.up_proj", "mlp.gate": "mlp.gate_proj", "mlp.down": "mlp.down_proj",
        "attention_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm",
    }  # fmt: skip
    state = other.state_dict()
    ours = {
        f"blocks.{k}.{mine}.weight": state[f"model.layers.{k}.{theirs}.weight"]
        for k in range(2)
        for mine, theirs in names.items()
    }
    ours["embedding.weight"] = state["model.embed_tokens.weight"]
    ours["final_norm.weight"] = state["model.norm.weight"]
    ours["head.weight"] = state["lm_head.weight"]
    model.load_state_dict(ours)
    with torch.no_grad():
        tokens = tokens_of()
        assert torch.allclose(model(tokens), other(tokens).logits, rtol=0, atol=1e-5)


def test_gpt2_124m_has_the_published_number_of_parameters() -> None:
    with torch.device("meta"):
        model = Transformer(preset("gpt2-124m", 50257))
    assert sum(p.numel() for p in model.parameters()) == 124_439_808


def test_what_adds_to_the_residual_stream_starts_smaller() -> None:
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(**{**SMALL, "width": 256, "layers": 8}))
    for block in model.blocks:
        for linear in (block.attention.output, block.mlp.down):
            assert linear.weight.std().item() == pytest.approx(0.02 / 4, rel=0.05)
        for linear in (block.attention.query, block.mlp.up, block.mlp.gate):
            assert linear.weight.std().item() == pytest.approx(0.02, rel=0.05)


def test_each_preset_makes_a_model() -> None:
    for name in PRESETS:
        with torch.device("meta"):
            model = Transformer(preset(name, 300))
        tokens = torch.zeros((1, model.config.context), dtype=torch.int64, device="meta")
        assert model(tokens).shape == (1, model.config.context, 300)


def test_a_model_made_on_meta_gets_the_same_start() -> None:
    torch.manual_seed(0)
    here = Transformer(TransformerConfig(**SMALL, tied=False))
    with torch.device("meta"):
        made = Transformer(TransformerConfig(**SMALL, tied=False))
    Materialiser(torch.device("cpu")).fill(made)
    assert torch.equal(made.rotary.table, here.rotary.table)
    assert made.blocks[1].mlp.down.weight.std().item() == pytest.approx(0.01, rel=0.1)
    assert made.embedding.weight.std().item() == pytest.approx(0.02, rel=0.1)


def test_dropout_acts_in_training_alone() -> None:
    model = model_of(dropout=0.5)
    tokens = tokens_of()
    assert torch.equal(model.eval()(tokens), model(tokens))
    assert not torch.equal(model.train()(tokens), model(tokens))


@pytest.mark.parametrize("mean", [GPT2, {"kv_heads": 2, "qk_norm": True}])
def test_a_documents_loss_and_gradient_do_not_depend_on_its_neighbours(mean: Any) -> None:
    """The middle one of three in a row, beside others of different tokens and different lengths."""
    model = model_of(**mean)
    middle = tokens_of(batch=1, length=9)[0]

    def of_the_middle(before: int, seed: int) -> tuple[Tensor, list[Tensor]]:
        row = tokens_of(batch=1, length=24, seed=seed)[0]
        row[before : before + 9] = middle
        documents = torch.full((1, 24), 5)
        documents[0, before : before + 9] = 6
        documents[0, before + 9 :] = 9
        logits = model(row[None], documents=documents)[0, before : before + 9]
        loss = F.cross_entropy(logits[:-1], middle[1:])
        return loss, list(torch.autograd.grad(loss, list(model.parameters())))

    loss, gradients = of_the_middle(8, seed=2)
    again, same = of_the_middle(8, seed=3)
    assert torch.equal(loss, again)
    moved, close = of_the_middle(5, seed=4)
    assert torch.allclose(loss, moved, rtol=0, atol=1e-6)
    alone = F.cross_entropy(model(middle[None])[0, :-1], middle[1:])
    assert torch.allclose(loss, alone, rtol=0, atol=1e-6)
    for (name, _), a, b, c in zip(model.named_parameters(), gradients, same, close, strict=True):
        scale = float(a.abs().max()) + 1e-3
        assert torch.allclose(a, b, rtol=0, atol=1e-6 * scale), name
        assert torch.allclose(a, c, rtol=0, atol=1e-5 * scale), name


def test_positions_restart_in_each_document() -> None:
    documents = torch.tensor([[4, 4, 4, 7, 7, 2], [0, 1, 1, 1, 0, 0]])
    expected = [[0, 1, 2, 0, 1, 0], [0, 0, 1, 2, 0, 1]]
    assert positions_in_documents(documents).tolist() == expected


def test_mask_and_offsets_say_the_same() -> None:
    documents = torch.tensor([[4, 4, 4, 7, 7, 2], [0, 1, 1, 1, 0, 0]])
    mask = pack_by_mask(documents).mask
    assert mask is not None
    for row in range(2):
        for q in range(6):
            for k in range(6):
                between = documents[row, min(q, k) : max(q, k) + 1]
                assert mask[row, 0, q, k] == (k <= q and len(set(between.tolist())) == 1)
    packing = pack_by_offsets(documents)
    assert packing.offsets is not None
    assert packing.offsets.tolist() == [0, 3, 5, 6, 7, 10, 12]
    assert packing.longest == 3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="varlen attention needs CUDA")
def test_varlen_attention_equals_the_mask() -> None:
    model = model_of(kv_heads=2, head_width=16).cuda()
    tokens = tokens_of().cuda()
    documents = (torch.arange(24, device="cuda") // 7).expand(3, 24).contiguous()
    with torch.autocast("cuda", torch.bfloat16):
        packed = model(tokens, documents=documents)
    masked = model(tokens, documents=documents)  # fp32: by the mask
    assert torch.allclose(packed.float(), masked, rtol=0.05, atol=0.05)
    packed.float().logsumexp(-1).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, "layers=0 is not an integer of at least 1"),
        ({"context": 2.5}, "context=2.5 is not an integer"),
        ({"width": 30}, "width=30 cannot be divided by heads=4: write e.g. width=32"),
        ({"kv_heads": 3}, "heads=4 cannot be divided by kv_heads=3: write e.g. kv_heads=1"),
        ({"head_width": 7}, "rotary positions turn pairs of features, and a head has 7"),
        ({"norm": "batch"}, "norm='batch' is unknown: write norm='rms' or norm='layer'"),
        ({"activation": "silu"}, "activation='silu' is unknown"),
        ({"dropout": 1.0}, "dropout=1.0 must be from 0 to below 1"),
        ({"tied": 1}, "tied=1 is neither True nor False"),
        ({"rotary_scaling": {"rope_type": "yarn"}}, "rope_type 'yarn', which is not supported"),
        ({"rotary_scaling": {"rope_type": "linear"}}, "lacks 'factor': add it"),
        ({"norm_eps": 0.0}, "norm_eps=0.0 must be above 0"),
    ],
)
def test_sizes_that_cannot_work_are_refused_in_one_line(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        TransformerConfig(**{**SMALL, **changes})
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(ConfigError, match="no preset is called 'tinyy': did you mean 'tiny'"):
        preset("tinyy", 100)


def test_more_tokens_than_the_context_are_refused() -> None:
    with pytest.raises(ConfigError, match="25 tokens are more than the model's context of 24"):
        model_of()(tokens_of(length=25))


@pytest.mark.parametrize("mean", [GPT2, {"kv_heads": 2, "qk_norm": True}])
def test_with_a_cache_the_logits_are_the_same(mean: Any) -> None:
    model, tokens = model_of(**mean), tokens_of()
    cache = model.new_cache(3, 24)
    with torch.no_grad():
        parts = [
            model(tokens[:, a:b], cache=cache) for a, b in ((0, 9), (9, 10), (10, 16), (16, 24))
        ]
        assert torch.allclose(torch.cat(parts, dim=1), model(tokens), rtol=0, atol=1e-5)
    with pytest.raises(ConfigError, match="documents and a cache cannot be combined"):
        model(tokens, documents=tokens, cache=cache)
    with pytest.raises(ConfigError, match="capacity=25 is more than the model's context of 24"):
        model.new_cache(1, 25)


@pytest.mark.parametrize("how", ["causal", "mask", "all"])
def test_attention_in_bf16_on_a_cpu_is_attention(how: str) -> None:
    """Against float64; grouped queries, with the gradients."""
    torch.manual_seed(0)
    shapes = ((2, 4, 9, 8), (2, 2, 9, 8), (2, 2, 9, 8))
    half = [torch.randn(shape).bfloat16().requires_grad_() for shape in shapes]
    exact = [x.detach().double().requires_grad_() for x in half]
    mask = torch.rand(2, 1, 9, 9).gt(0.5) | torch.eye(9, dtype=torch.bool)
    arguments = {"causal": (None, True), "mask": (mask, False), "all": (None, False)}[how]
    outputs = [attend(*inputs, *arguments, 0.0) for inputs in (half, exact)]
    for output in outputs:
        output.square().sum().backward()
    assert torch.allclose(outputs[0].double(), outputs[1], rtol=0.02, atol=0.02)
    for x, y in zip(half, exact, strict=True):
        assert x.grad is not None
        assert y.grad is not None
        assert torch.allclose(x.grad.double(), y.grad, rtol=0.05, atol=0.1)
