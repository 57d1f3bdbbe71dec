"""The shape of a transformer, and the shapes that have names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueloop import _options
from trueloop.errors import ConfigError, nearest

NORMS = ("rms", "layer")
POSITIONS = ("rotary", "learned")
ACTIVATIONS = ("swiglu", "gelu", "gelu_tanh", "relu2")
LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
"""The parts of the llama3 kind of `rotary_scaling`."""


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The shape of a `Transformer`. Raises `ConfigError` for sizes that do not fit together."""

    vocab_size: int
    """Ids that the model knows: 0 to vocab_size - 1."""
    context: int
    """Most positions of one sequence."""
    layers: int
    """Blocks of attention and MLP."""
    width: int
    """Features of a position between the blocks."""
    heads: int
    """Attention heads (of the queries)."""
    kv_heads: int | None = None
    """Heads of keys and values, each shared by heads / kv_heads queries; None is `heads`."""
    head_width: int | None = None
    """Features of a head; None is width / heads."""
    hidden: int | None = None
    """Features inside the MLP; None is 4 width, and for swiglu 8/3 width in whole 64s."""
    norm: str = "rms"
    """rms or layer."""
    norm_eps: float = 1e-5
    """Added to the variance (layer) or mean square (rms)."""
    positions: str = "rotary"
    """rotary or learned."""
    rotary_base: float = 10000.0
    """Base of the wavelengths of rotary positions (`rope_theta`)."""
    rotary_scaling: Mapping[str, Any] | None = None
    """How they are stretched, as in a published config.json: `{"rope_type": "linear", "factor": 4}`
    or Llama 3's; None for not at all."""
    activation: str = "swiglu"
    """swiglu, gelu, gelu_tanh (its tanh approximation, GPT-2's) or relu2."""
    bias: bool = False
    """Whether linear layers and layer norms have biases."""
    attention_bias: bool | None = None
    """The same for the four projections of attention; None is `bias`."""
    tied: bool = True
    """Whether the head's matrix is the embedding's."""
    dropout: float = 0.0
    """Of the embeddings, the attention weights and the outputs of the sublayers."""
    qk_norm: bool = False
    """Whether queries and keys get a separate RMSNorm, per head, before they are rotated."""

    def __post_init__(self) -> None:
        for name in ("vocab_size", "context", "layers", "width", "heads"):
            _options.whole(name, getattr(self, name))
        for name in ("kv_heads", "head_width", "hidden"):
            if getattr(self, name) is not None:
                _options.whole(name, getattr(self, name))
        _options.choice("norm", self.norm, NORMS)
        _options.choice("positions", self.positions, POSITIONS)
        _options.choice("activation", self.activation, ACTIVATIONS)
        _options.positive("norm_eps", self.norm_eps, "1e-5")
        _options.positive("rotary_base", self.rotary_base, "10000.0")
        _options.share("dropout", self.dropout, below_one=True)
        for name in ("bias", "tied", "qk_norm"):
            _options.flag(name, getattr(self, name))
        if self.attention_bias is not None:
            _options.flag("attention_bias", self.attention_bias)
        self._check_heads()
        if self.rotary_scaling is not None:
            _check_scaling(self.rotary_scaling)

    def _check_heads(self) -> None:
        if self.head_width is None and self.width % self.heads:
            raise ConfigError(
                f"width={self.width} cannot be divided by heads={self.heads}: write e.g. "
                f"width={math.ceil(self.width / self.heads) * self.heads} or "
                f"heads={math.gcd(self.width, self.heads)}"
            )
        if self.heads % self.n_kv_heads:
            raise ConfigError(
                f"heads={self.heads} cannot be divided by kv_heads={self.kv_heads}: write e.g. "
                f"kv_heads={math.gcd(self.heads, self.n_kv_heads)}"
            )
        if self.positions == "rotary" and self.features_per_head % 2:
            even = self.features_per_head + 1
            remedy = (
                f"width={even * self.heads}" if self.head_width is None else f"head_width={even}"
            )
            raise ConfigError(
                "rotary positions turn pairs of features, and a head has "
                f"{self.features_per_head}: write e.g. {remedy}"
            )

    @property
    def n_kv_heads(self) -> int:
        """`kv_heads`, or its default."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def features_per_head(self) -> int:
        """`head_width`, or its default."""
        return self.width // self.heads if self.head_width is None else self.head_width

    @property
    def hidden_features(self) -> int:
        """`hidden`, or its default."""
        if self.hidden is not None:
            return self.hidden
        if self.activation == "swiglu":  # three matrices of 8/3 hold what two of 4 do
            return 64 * math.ceil(8 * self.width / 3 / 64)
        return 4 * self.width


def _check_scaling(scaling: Any) -> None:
    """Raise `ConfigError` unless it is a `rotary_scaling` that `inverse_frequencies` knows."""
    example = "{'rope_type': 'linear', 'factor': 4.0}"
    _options.mapping("rotary_scaling", scaling, example)
    kind = scaling.get("rope_type", scaling.get("type"))
    needed = {"default": (), "linear": ("factor",), "llama3": LLAMA3}.get(str(kind))
    if needed is None:
        raise ConfigError(
            f"rotary_scaling has rope_type {_options.shown(kind)}, which is not supported: write "
            f"'linear' or 'llama3', e.g. rotary_scaling={example}"
        )
    for name in needed:
        if name not in scaling:
            raise ConfigError(f"rotary_scaling of rope_type {kind!r} lacks {name!r}: add it")
        _options.positive(f"rotary_scaling[{name!r}]", scaling[name], "8.0")


_MODERN = {"activation": "relu2", "qk_norm": True}
"""Of the presets that are ours, beside the defaults."""
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"context": 256, "layers": 4, "width": 128, "heads": 2, **_MODERN},
    "small": {"context": 512, "layers": 8, "width": 384, "heads": 6, **_MODERN},
    "gpt2-124m": {
        "context": 1024,
        "layers": 12,
        "width": 768,
        "heads": 12,
        "norm": "layer",
        "positions": "learned",
        "activation": "gelu_tanh",
        "bias": True,
    },
}
"""Sizes by name: what `preset` makes a configuration from."""


def preset(name: str, vocab_size: int, **changes: Any) -> TransformerConfig:
    """The configuration called `name` for so many ids, with `changes` to its fields.

    Raises `ConfigError` for an unknown name and for sizes that do not fit together.
    """
    if name not in PRESETS:
        raise ConfigError(f"no preset is called {name!r}: {nearest(name, PRESETS)}")
    return TransformerConfig(**{**PRESETS[name], "vocab_size": vocab_size, **changes})
