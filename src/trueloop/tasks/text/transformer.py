"""A decoder-only transformer, in one file: token ids in, logits of the next token out.

One shape of model with the parts that are in use today as options, so that GPT-2 and the Llama
family are configurations of it: RMSNorm or LayerNorm before each sublayer (Xiong et al. 2020),
rotary (Su et al. 2021) or learned positions, grouped queries (Ainslie et al. 2023), SwiGLU
(Shazeer 2020), GELU or squared ReLU (So et al. 2021), tied embeddings (Press and Wolf 2017).

The configuration itself is in `config.py`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trueloop import _options
from trueloop.errors import ConfigError
from trueloop.generate import KeyValueCache
from trueloop.tasks.text.transformer_config import LLAMA3, TransformerConfig

_STD = 0.02
"""Of the initial weights, as GPT-2 has it."""


class Packing(NamedTuple):
    """Who attends to whom where rows have several documents: `mask` bool (batch, 1, length,
    length), or for `varlen_attn` the offsets of all documents in the batch laid end to end, int32
    (documents + 1), and the longest one's length."""

    mask: Tensor | None
    offsets: Tensor | None = None
    longest: int = 0


def positions_in_documents(documents: Tensor) -> Tensor:
    """The position of each token in its own document; int64 (batch, length), as `documents` is."""
    places = torch.arange(documents.shape[1], device=documents.device).expand_as(documents)
    return places - torch.where(_is_first(documents), places, 0).cummax(dim=1).values


def _is_first(documents: Tensor) -> Tensor:
    """Whether a token is its document's first in the row; bool (batch, length)."""
    first = torch.ones_like(documents, dtype=torch.bool)
    first[:, 1:] = documents[:, 1:] != documents[:, :-1]
    return first


def pack_by_mask(documents: Tensor) -> Packing:
    """Block-diagonal and causal: each token attends to its own document up to itself."""
    starts = _is_first(documents).cumsum(dim=1)
    same = starts[:, :, None] == starts[:, None, :]
    return Packing(same.tril_()[:, None])


def pack_by_offsets(documents: Tensor) -> Packing:
    """The same for `torch.nn.attention.varlen`, which never computes what a mask would hide.

    On an accelerator this waits for the device once per forward: the kernel's grid is as large as
    the number of documents, which the host must know.
    """
    first = _is_first(documents).flatten().nonzero().flatten()
    offsets = F.pad(first, (0, 1), value=documents.numel())
    longest = int(offsets.diff().max())
    return Packing(None, offsets.to(torch.int32), longest)


def varlen_runs(queries: Tensor, dropout: float) -> bool:
    """Whether `varlen_attn` can take these queries (…, head_width): flash attention needs a CUDA
    device of compute capability 8 or above, half precision and heads of 8 to 256 features."""
    if queries.device.type != "cuda" or dropout:
        return False
    width, half = queries.shape[-1], queries.dtype in (torch.float16, torch.bfloat16)
    capable = torch.cuda.get_device_capability(queries.device) >= (8, 0)
    return half and width <= 256 and width % 8 == 0 and capable


def inverse_frequencies(config: TransformerConfig) -> Tensor:
    """Radians per position of each pair of features, float32 (head_width / 2).

    In float32 and in the order of operations of the published models, so that their logits come out
    the same. The llama3 scaling is that of Llama 3.1's own code: wavelengths that fit into the
    original context many times stay, those longer than it are stretched, between the two they
    blend.
    """
    size = config.features_per_head
    exponents = torch.arange(0, size, 2, dtype=torch.float32) / size
    frequencies = 1.0 / (config.rotary_base**exponents)
    scaling = config.rotary_scaling or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "linear":
        return frequencies / float(scaling["factor"])
    if kind == "llama3":
        factor, low, high, context = (float(scaling[name]) for name in LLAMA3)
        wavelengths = 2 * math.pi / frequencies
        blend = ((context / wavelengths - low) / (high - low)).clamp(0, 1)
        return (1 - blend) * frequencies / factor + blend * frequencies
    return frequencies


class RotaryPositions(nn.Module):
    """Cosines and sines by which queries and keys are turned.

    Feature i turns with feature i + head_width / 2 ("half rotation"), as the Llama checkpoints of
    transformers have it.
    """

    table: Tensor

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        shape = (2, config.context, config.features_per_head // 2)
        self.register_buffer("table", torch.empty(shape), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if not self.table.is_meta:
            places = torch.arange(self.config.context, dtype=torch.float32)
            angles = torch.outer(places, inverse_frequencies(self.config))
            self.table.copy_(torch.stack((angles.cos(), angles.sin())))

    def forward(self, positions: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Cosines and sines at positions int64 (batch, length), or at a slice of them; to be
        multiplied with (batch, heads, length, head_width / 2)."""
        if isinstance(positions, slice):
            return self.table[0, positions], self.table[1, positions]
        return self.table[0, positions].unsqueeze(1), self.table[1, positions].unsqueeze(1)


def rotate(features: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """`features` (batch, heads, length, head_width), each pair (i, i + head_width / 2) turned."""
    first, second = features.chunk(2, dim=-1)
    turned = (first * cosines - second * sines, second * cosines + first * sines)
    return torch.cat(turned, dim=-1).to(features.dtype)


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    dropout: float,
) -> Tensor:
    """softmax(queries keysᵀ / sqrt(head_width)) values, (batch, heads, length, head_width).

    `mask` is bool, True where a query sees a key. Keys and values may have fewer heads.
    """
    if queries.device.type == "cpu" and queries.dtype == torch.bfloat16:
        return _attend_in_bf16_on_cpu(queries, keys, values, mask, is_causal, dropout)
    return F.scaled_dot_product_attention(
        queries,
        keys,
        values,
        attn_mask=mask,
        is_causal=is_causal,
        dropout_p=dropout,
        enable_gqa=keys.shape[1] != queries.shape[1],
    )


def _attend_in_bf16_on_cpu(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    dropout: float,
) -> Tensor:
    """The same by plain matrix products: at the lengths that are trained on a CPU they take half
    the time of torch 2.13's fused kernel, whose bfloat16 backward is slow there."""
    groups = queries.shape[1] // keys.shape[1]
    if groups > 1:
        keys, values = (x.repeat_interleave(groups, dim=1) for x in (keys, values))
    scores = (queries * queries.shape[-1] ** -0.5) @ keys.transpose(2, 3)
    if is_causal:
        hidden = torch.full(scores.shape[-2:], -math.inf, dtype=scores.dtype).triu_(1)
        scores = scores.add_(hidden)
    elif mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = F.dropout(scores.softmax(dim=-1), dropout)
    return weights.to(values.dtype) @ values


class RMSNorm(nn.RMSNorm):
    """torch's, which under autocast is given inputs and weights of different dtypes: it would warn,
    and do without its fused kernel."""

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.eps)


def _norm(config: TransformerConfig) -> nn.Module:
    if config.norm == "rms":
        return RMSNorm(config.width, eps=config.norm_eps)
    return nn.LayerNorm(config.width, eps=config.norm_eps, bias=config.bias)


def _initialise(linear: nn.Linear, std: float = _STD) -> None:
    nn.init.normal_(linear.weight, std=std)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)


def _residual_std(config: TransformerConfig) -> float:
    """Of what adds to the residual stream, 2 layers times: GPT-2's scaling (Radford et al. 2019,
    section 2.3) keeps the stream's variance from growing with the depth."""
    return _STD / math.sqrt(2 * config.layers)


class Attention(nn.Module):
    """Causal self-attention with grouped queries."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        size = config.features_per_head
        bias = config.bias if config.attention_bias is None else config.attention_bias
        self.query = nn.Linear(config.width, config.heads * size, bias=bias)
        self.key = nn.Linear(config.width, config.n_kv_heads * size, bias=bias)
        self.value = nn.Linear(config.width, config.n_kv_heads * size, bias=bias)
        self.output = nn.Linear(config.heads * size, config.width, bias=bias)
        if config.qk_norm:
            self.query_norm = RMSNorm(size, eps=config.norm_eps)
            self.key_norm = RMSNorm(size, eps=config.norm_eps)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for linear in (self.query, self.key, self.value):
            _initialise(linear)
        _initialise(self.output, _residual_std(self.config))

    def forward(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor] | None,
        packing: Packing | None,
        cache: KeyValueCache | None,
        layer: int,
    ) -> Tensor:
        """`x` and the output: (batch, length, width)."""
        queries, keys, values = (
            linear(x).unflatten(-1, (-1, self.config.features_per_head)).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        if self.config.qk_norm:
            queries, keys = self.query_norm(queries), self.key_norm(keys)
        if rotation is not None:
            queries, keys = rotate(queries, *rotation), rotate(keys, *rotation)
        mask, is_causal = None if packing is None else packing.mask, packing is None
        if cache is not None:
            keys, values, (mask, is_causal) = cache.extend(layer, keys, values)
        if packing is not None and packing.offsets is not None:
            mixed = self._varlen(queries, keys, values, packing)
        else:
            dropout = self.config.dropout if self.training else 0.0
            mixed = attend(queries, keys, values, mask, is_causal, dropout)
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return output

    def _varlen(self, queries: Tensor, keys: Tensor, values: Tensor, packing: Packing) -> Tensor:
        """Attention within documents that come one after the other, rows after rows."""
        from torch.nn.attention.varlen import varlen_attn

        batch, heads, length, size = queries.shape
        offsets = packing.offsets
        assert offsets is not None
        groups = self.config.heads // self.config.n_kv_heads
        keys, values = (
            x.repeat_interleave(groups, dim=1) if groups > 1 else x for x in (keys, values)
        )
        flat = [x.transpose(1, 2).flatten(0, 1).contiguous() for x in (queries, keys, values)]
        mixed = varlen_attn(
            flat[0],
            flat[1],
            flat[2],
            offsets,
            offsets,
            packing.longest,
            packing.longest,
            window_size=(-1, 0),
        )
        assert isinstance(mixed, Tensor)
        rows: Tensor = mixed.view(batch, length, heads, size).transpose(1, 2)
        return rows


class MLP(nn.Module):
    """Two matrices and the layers between them; with swiglu a third one that gates."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        hidden = config.hidden_features
        self.up = nn.Linear(config.width, hidden, bias=config.bias)
        if config.activation == "swiglu":
            self.gate = nn.Linear(config.width, hidden, bias=config.bias)
        self.down = nn.Linear(hidden, config.width, bias=config.bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _initialise(self.up)
        if self.config.activation == "swiglu":
            _initialise(self.gate)
        _initialise(self.down, _residual_std(self.config))

    def forward(self, x: Tensor) -> Tensor:
        activation = self.config.activation
        if activation == "swiglu":
            hidden = F.silu(self.gate(x)) * self.up(x)
        elif activation == "relu2":
            hidden = F.relu(self.up(x)).square()
        else:
            hidden = F.gelu(self.up(x), approximate="none" if activation == "gelu" else "tanh")
        output: Tensor = self.down(hidden)
        return output


class TransformerBlock(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.attention_norm = _norm(config)
        self.attention = Attention(config)
        self.mlp_norm = _norm(config)
        self.mlp = MLP(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor] | None,
        packing: Packing | None,
        cache: KeyValueCache | None,
        layer: int,
    ) -> Tensor:
        mixed = self.attention(self.attention_norm(x), rotation, packing, cache, layer)
        x = x + (self.dropout(mixed) if self.dropout.p else mixed)
        changed: Tensor = self.mlp(self.mlp_norm(x))
        return x + (self.dropout(changed) if self.dropout.p else changed)


class Transformer(nn.Module):
    """Token ids int64 (batch, length) to logits (batch, length, vocab_size) of the next token."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.width)
        if config.positions == "learned":
            self.position_embedding = nn.Embedding(config.context, config.width)
        else:
            self.rotary = RotaryPositions(config)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(TransformerBlock(config) for _ in range(config.layers))
        self.final_norm = _norm(config)
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)
        if config.tied:
            self.head.weight = self.embedding.weight
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.embedding.weight, std=_STD)
        if self.config.positions == "learned":
            nn.init.normal_(self.position_embedding.weight, std=_STD)
        if not self.config.tied:
            _initialise(self.head)

    def forward(
        self, tokens: Tensor, *, documents: Tensor | None = None, cache: KeyValueCache | None = None
    ) -> Tensor:
        """Logits float (batch, length, vocab_size) for `tokens` int64 (batch, length).

        `documents` int64 (batch, length), the number of each token's document: attention does not
        cross from one to the next, and positions restart in each. `cache` has the tokens before
        these; the new ones follow them, and are in it afterwards. Raises `ConfigError` for a
        sequence longer than the context.
        """
        length = tokens.shape[1]
        self._check(length, documents, cache)
        positions: Tensor | slice = slice(0, length)
        packing = None
        if cache is not None:
            positions = cache.positions(length)
        elif documents is not None:
            positions = positions_in_documents(documents)
            packing = self._pack(documents)
        x = self.embedding(tokens)
        rotation = None
        if self.config.positions == "rotary":
            rotation = self.rotary(positions)
        elif isinstance(positions, slice):
            x = x + self.position_embedding.weight[positions]
        else:
            x = x + self.position_embedding(positions)
        x = self.dropout(x)
        for layer, block in enumerate(self.blocks):
            x = block(x, rotation, packing, cache, layer)
        if cache is not None:
            cache.advance(length)
        logits: Tensor = self.head(self.final_norm(x))
        return logits

    def _check(self, length: int, documents: Tensor | None, cache: KeyValueCache | None) -> None:
        if length > self.config.context:
            raise ConfigError(
                f"{length:,} tokens are more than the model's context of {self.config.context:,}: "
                f"give it the last {self.config.context:,} of them"
            )
        if documents is not None and cache is not None:
            raise ConfigError("documents and a cache cannot be combined: leave out one of them")

    def new_cache(self, batch: int, capacity: int) -> KeyValueCache:
        """An empty cache for `batch` sequences of at most `capacity` positions, to pass to
        `forward`. Raises `ConfigError` for a capacity beyond the context."""
        _options.whole("batch", batch)
        if _options.whole("capacity", capacity) > self.config.context:
            raise ConfigError(
                f"capacity={capacity:,} is more than the model's context of "
                f"{self.config.context:,}: write capacity={self.config.context}"
            )
        return KeyValueCache(
            layers=self.config.layers,
            batch=batch,
            heads=self.config.n_kv_heads,
            capacity=capacity,
            width=self.config.features_per_head,
            dtype=self.embedding.weight.dtype,
            device=self.embedding.weight.device,
        )

    def decoding(self) -> Any:
        """The model that `generate` calls: itself, or for a small model `Decoding`, which takes
        single tokens faster."""
        from trueloop.tasks.text.decoding import Decoding, can_decode

        return Decoding(self) if can_decode(self) else self

    def _pack(self, documents: Tensor) -> Packing:
        dropout = self.config.dropout if self.training else 0.0
        dtype = self.embedding.weight.dtype
        if torch.is_autocast_enabled(documents.device.type):
            dtype = torch.get_autocast_dtype(documents.device.type)
        shape = (0, self.config.features_per_head)
        if varlen_runs(torch.empty(shape, dtype=dtype, device=documents.device), dropout):
            return pack_by_offsets(documents)
        return pack_by_mask(documents)
