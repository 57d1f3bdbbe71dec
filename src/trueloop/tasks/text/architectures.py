"""Published architectures that a `Transformer` can be: their config.json, and their weights' names.

GPT-2 (Radford et al. 2019) keeps its linear weights transposed, (in, out), and query, key and value
in one; Llama (Touvron et al. 2023), Mistral (Jiang et al. 2023) and Qwen3 keep them as torch does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from trueloop.errors import ConfigError
from trueloop.tasks.text.transformer_config import TransformerConfig

Json = dict[str, Any]

FAMILIES = ("gpt2", "llama", "mistral", "qwen3")
"""Values of `model_type` that can be read."""


class WeightLocation(NamedTuple):
    """The location of a weight in the published file."""

    name: str
    """Without the prefix `transformer.` or `model.`."""
    part: int = 0
    """Which part of it, counted from 0, along the outputs."""
    parts: int = 1
    transposed: bool = False
    """(in, out) there; a linear layer has (out, in)."""


_PLACES = {
    "gpt2": {
        "embedding": "wte",
        "position_embedding": "wpe",
        "final_norm": "ln_f",
        "head": "lm_head",
        "attention_norm": "ln_1",
        "mlp_norm": "ln_2",
        "attention.output": "attn.c_proj",
        "mlp.up": "mlp.c_fc",
        "mlp.down": "mlp.c_proj",
    },
    "llama": {
        "embedding": "embed_tokens",
        "final_norm": "norm",
        "head": "lm_head",
        "attention_norm": "input_layernorm",
        "mlp_norm": "post_attention_layernorm",
        "attention.query": "self_attn.q_proj",
        "attention.key": "self_attn.k_proj",
        "attention.value": "self_attn.v_proj",
        "attention.output": "self_attn.o_proj",
        "attention.query_norm": "self_attn.q_norm",
        "attention.key_norm": "self_attn.k_norm",
        "mlp.up": "mlp.up_proj",
        "mlp.gate": "mlp.gate_proj",
        "mlp.down": "mlp.down_proj",
    },
}
_FUSED = ("attention.query", "attention.key", "attention.value")
_TRANSPOSED = ("attention.output", "mlp.up", "mlp.down")
_BLOCK = re.compile(r"blocks\.(\d+)\.(.+)\.(weight|bias)")
PREFIX = {"gpt2": "transformer.", "llama": "model.", "mistral": "model.", "qwen3": "model."}
"""Of all names but the head's, in files of whole language models."""
# Buffers that older versions of transformers saved: masks and tables, no weights.
BUFFERS = re.compile(r"(.*\.attn\.(bias|masked_bias)|.*rotary_emb\.inv_freq)")


def place(family: str, name: str) -> WeightLocation:
    """The location of the weight `name` of a `Transformer` in a file of `family`."""
    names = _PLACES["gpt2" if family == "gpt2" else "llama"]
    found = _BLOCK.fullmatch(name)
    if found is None:
        module, _, kind = name.rpartition(".")
        return WeightLocation(f"{names[module]}.{kind}")
    layer, module, kind = found.groups()
    if family != "gpt2":
        return WeightLocation(f"layers.{layer}.{names[module]}.{kind}")
    is_matrix = kind == "weight"
    if module in _FUSED:
        there = f"h.{layer}.attn.c_attn.{kind}"
        return WeightLocation(there, _FUSED.index(module), len(_FUSED), is_matrix)
    transposed = is_matrix and module in _TRANSPOSED
    return WeightLocation(f"h.{layer}.{names[module]}.{kind}", transposed=transposed)


def family_of(published: Mapping[str, Any]) -> str:
    """The architecture of a config.json. Raises `ConfigError` for one that is not known."""
    family = published.get("model_type")
    if family is None and isinstance(published.get("architectures"), list):
        # The oldest of GPT-2's say it by the class alone: GPT2LMHeadModel.
        named = " ".join(map(str, published["architectures"])).lower()
        family = next((known for known in FAMILIES if known in named), named)
    if family not in FAMILIES:
        raise ConfigError(
            f"the architecture {str(family)!r} is not supported: give a model of {_listed()}"
        )
    return str(family)


def config_of(published: Mapping[str, Any]) -> TransformerConfig:
    """The shape of the model that a config.json describes, without dropout.

    Raises `ConfigError` where the architecture is not known, a size is missing or not a size, or
    something is switched on that a `Transformer` does not have.
    """
    family = family_of(published)
    if published.get("quantization_config") is not None:
        raise ConfigError("its weights are quantized: give the checkpoint in bf16, fp16 or fp32")
    return _gpt2(published) if family == "gpt2" else _llama(published, family)


def _gpt2(published: Mapping[str, Any]) -> TransformerConfig:
    for name, usual in (
        ("scale_attn_weights", True),
        ("scale_attn_by_inverse_layer_idx", False),
        ("add_cross_attention", False),
    ):
        if published.get(name, usual) != usual:
            _refuse(name, published[name])
    activations = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}
    activation = str(published.get("activation_function", "gelu_new"))
    if activation not in activations:
        _refuse("activation_function", activation)
    return TransformerConfig(
        vocab_size=_needed(published, "vocab_size"),
        context=_needed(published, "n_positions"),
        layers=_needed(published, "n_layer"),
        width=_needed(published, "n_embd"),
        heads=_needed(published, "n_head"),
        hidden=published.get("n_inner"),
        norm="layer",
        norm_eps=published.get("layer_norm_epsilon", 1e-5),
        positions="learned",
        activation=activations[activation],
        bias=True,
        tied=published.get("tie_word_embeddings", True),
    )


def _llama(published: Mapping[str, Any], family: str) -> TransformerConfig:
    if published.get("hidden_act", "silu") != "silu":
        _refuse("hidden_act", published["hidden_act"])
    if published.get("use_sliding_window") or "sliding_attention" in (
        published.get("layer_types") or ()
    ):
        _refuse("use_sliding_window", True)
    context = _needed(published, "max_position_embeddings")
    window = published.get("sliding_window") if family == "mistral" else None
    if window is not None:  # within it attention is the whole
        context = min(context, window)
    base, scaling = _rotary(published)
    return TransformerConfig(
        vocab_size=_needed(published, "vocab_size"),
        context=context,
        layers=_needed(published, "num_hidden_layers"),
        width=_needed(published, "hidden_size"),
        heads=_needed(published, "num_attention_heads"),
        kv_heads=published.get("num_key_value_heads"),
        head_width=published.get("head_dim"),
        hidden=_needed(published, "intermediate_size"),
        norm_eps=published.get("rms_norm_eps", 1e-6),
        rotary_base=base,
        rotary_scaling=scaling,
        bias=published.get("mlp_bias", False),
        attention_bias=published.get("attention_bias", False),
        tied=published.get("tie_word_embeddings", False),
        qk_norm=family == "qwen3",
    )


def _rotary(published: Mapping[str, Any]) -> tuple[float, Json | None]:
    """Base and scaling, which were two keys once and are one since transformers 5."""
    scaling = published.get("rope_parameters") or published.get("rope_scaling")
    if scaling is None:
        return published.get("rope_theta", 10000.0), None
    if not isinstance(scaling, Mapping):
        raise ConfigError(f"its rope_scaling is {scaling!r}: give a checkpoint whose is an object")
    share = scaling.get("partial_rotary_factor", published.get("partial_rotary_factor", 1.0))
    if share != 1.0:
        _refuse("partial_rotary_factor", share)
    base = scaling.get("rope_theta", published.get("rope_theta", 10000.0))
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return base, None
    kept = {n: v for n, v in scaling.items() if n not in ("rope_theta", "partial_rotary_factor")}
    return base, kept


def _needed(published: Mapping[str, Any], name: str) -> Any:
    if name not in published:
        raise ConfigError(f"it lacks {name!r}: download config.json again")
    return published[name]


def _refuse(name: str, value: Any) -> None:
    raise ConfigError(
        f"it has {name}={value!r}, which is not supported: give a model of {_listed()} without it"
    )


def _listed() -> str:
    return ", ".join(FAMILIES[:-1]) + f" or {FAMILIES[-1]}"


def published_config(config: TransformerConfig) -> Json:
    """The config.json of the architecture in transformers that computes what this shape does.

    GPT-2 for layer norms, learned positions and gelu, where missing biases are zeros; Llama for
    RMSNorm, rotary positions and swiglu, Qwen3 where queries and keys have norms. Raises
    `ConfigError` where there is none.
    """
    found = (config.norm, config.positions, config.activation)
    if found[:2] == ("layer", "learned") and config.activation in ("gelu", "gelu_tanh"):
        return _as_gpt2(config)
    if found == ("rms", "rotary", "swiglu"):
        return _as_llama(config)
    raise ConfigError(
        f"no architecture that transformers loads has norm {found[0]}, positions {found[1]} and "
        f"activation {found[2]} together: export a model with rms, rotary and swiglu (Llama) or "
        "layer, learned and gelu (GPT-2)"
    )


def _as_gpt2(config: TransformerConfig) -> Json:
    odd = {
        "kv_heads": config.n_kv_heads != config.heads,
        "head_width": config.features_per_head * config.heads != config.width,
        "qk_norm": config.qk_norm,
    }
    _refuse_odd("GPT-2", config, odd)
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": config.vocab_size,
        "n_positions": config.context,
        "n_ctx": config.context,
        "n_embd": config.width,
        "n_layer": config.layers,
        "n_head": config.heads,
        "n_inner": config.hidden_features,
        "activation_function": "gelu" if config.activation == "gelu" else "gelu_new",
        "layer_norm_epsilon": config.norm_eps,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
        "tie_word_embeddings": config.tied,
    }


def _as_llama(config: TransformerConfig) -> Json:
    attention_bias = config.bias if config.attention_bias is None else config.attention_bias
    published: Json = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context,
        "num_hidden_layers": config.layers,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.n_kv_heads,
        "head_dim": config.features_per_head,
        "intermediate_size": config.hidden_features,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rotary_base,
        "rope_scaling": None if config.rotary_scaling is None else dict(config.rotary_scaling),
        "attention_bias": attention_bias,
        "mlp_bias": config.bias,
        "tie_word_embeddings": config.tied,
    }
    if config.qk_norm:
        _refuse_odd("Qwen3", config, {"bias": config.bias})
        del published["mlp_bias"]
        published |= {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}
        published |= {"use_sliding_window": False, "sliding_window": None}
    elif config.features_per_head * config.heads != config.width and config.width % config.heads:
        _refuse_odd("Llama", config, {"heads": True})  # transformers wants width / heads whole
    return published


def _refuse_odd(architecture: str, config: TransformerConfig, odd: Mapping[str, bool]) -> None:
    for name, is_odd in odd.items():
        if is_odd:
            raise ConfigError(
                f"{architecture} of transformers has no {name}={getattr(config, name)!r}: export a "
                "model trained without it"
            )
