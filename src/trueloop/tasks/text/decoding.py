"""One new token of each row, in fewer and larger operations than the model's own forward.

A small model spends its time between the operations, not in them. Here the projections that read
the same input are one matrix, norms' gains are multiplied into the matrix that follows, queries and
keys are turned together, and no module is called. The logits are the model's to rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trueloop.generate import KeyValueCache
from trueloop.tasks.text.transformer_config import TransformerConfig

MOST_WEIGHTS = 50_000_000
"""A larger model spends its time in the matrices, of which this would need a second copy."""
_PLAIN = ("Linear", "Embedding", "RMSNorm", "LayerNorm", "Dropout", "Identity")


class Layer(NamedTuple):
    """The weights of a block, as they are multiplied."""

    norm: nn.Module
    into: tuple[Tensor, Tensor | None]
    """Queries, keys and values; then their bias."""
    out: tuple[Tensor, Tensor | None]
    mlp_norm: nn.Module
    up: tuple[Tensor, Tensor | None]
    """With swiglu the gate and then the other half."""
    down: tuple[Tensor, Tensor | None]
    attention: Any


class DecodableModel(Protocol):
    """The parts that are read of a `Transformer`."""

    config: TransformerConfig
    embedding: nn.Embedding
    position_embedding: nn.Embedding
    blocks: nn.ModuleList
    final_norm: nn.Module
    head: nn.Linear

    def rotary(self, positions: Any) -> tuple[Tensor, Tensor]: ...

    def new_cache(self, batch: int, capacity: int) -> KeyValueCache: ...

    def __call__(self, tokens: Tensor, *, cache: KeyValueCache) -> Tensor: ...


def can_decode(model: nn.Module) -> bool:
    """Whether its weights are what they seem: plain matrices in at least float32, no hooks."""
    weights = list(model.parameters())
    return (
        sum(weight.numel() for weight in weights) <= MOST_WEIGHTS
        and all(type(weight) is nn.Parameter for weight in weights)
        and len({weight.dtype for weight in weights}) == 1
        and weights[0].dtype in (torch.float32, torch.float64)
        and not torch.is_autocast_enabled(weights[0].device.type)
        and not any(_is_odd(module) for module in model.modules())
    )


def _is_odd(module: nn.Module) -> bool:
    """Whether calling it does more than its class says."""
    has_hooks = bool(module._forward_hooks or module._forward_pre_hooks)
    own = type(module).__module__.startswith("trueloop.tasks.text.transformer")
    container = isinstance(module, nn.ModuleList)
    plain = type(module).__module__.startswith("torch.nn.modules")
    known = own or container or (plain and type(module).__name__ in _PLAIN)
    return has_hooks or not known or "forward" in vars(module)


class Decoding:
    """Calls like the model, `model(tokens, cache=cache)`; of single tokens by the short way.

    It has copies of the weights as they were when it was made. Made and called in inference mode.
    """

    def __init__(self, model: DecodableModel) -> None:
        self.config: TransformerConfig = model.config
        self.new_cache = model.new_cache
        self._model = model
        self._layers = [_layer(block, model.config) for block in model.blocks]
        self._head = _fused([model.head], model.final_norm)
        if model.config.positions == "rotary":
            cosines, sines = model.rotary(slice(None))
            # Feature i is turned with i + half, which a roll by half brings to its place.
            self._cosines = torch.cat((cosines, cosines), -1).to(model.head.weight.dtype)
            self._sines = torch.cat((-sines, sines), -1).to(model.head.weight.dtype)

    def __call__(self, tokens: Tensor, *, cache: KeyValueCache) -> Tensor:
        """Logits (batch, length, vocab_size) for int64 `tokens` (batch, length)."""
        if tokens.shape[1] > 1:
            logits: Tensor = self._model(tokens, cache=cache)
            return logits
        positions = cache.positions(1)
        x = F.embedding(tokens[:, 0], self._model.embedding.weight)
        turn = None
        if self.config.positions == "rotary":
            turn = self._cosines[positions][:, None], self._sines[positions][:, None]
        else:
            x = x + F.embedding(positions[:, 0], self._model.position_embedding.weight)
        for number, layer in enumerate(self._layers):
            x = self._attend(x, layer, number, turn, cache)
            x = self._mlp(x, layer)
        cache.advance(1)
        return F.linear(_normalised(x, self._model.final_norm), *self._head)[:, None]

    def _attend(
        self,
        x: Tensor,
        layer: Layer,
        number: int,
        turn: tuple[Tensor, Tensor] | None,
        cache: KeyValueCache,
    ) -> Tensor:
        """x (batch, width) plus what attention adds to it."""
        heads, shared = self.config.heads, self.config.n_kv_heads
        size = self.config.features_per_head
        joined = F.linear(_normalised(x, layer.norm), *layer.into)
        joined = joined.view(len(x), heads + 2 * shared, 1, size)
        values = joined.narrow(1, heads + shared, shared)
        both = joined.narrow(1, 0, heads + shared)
        if self.config.qk_norm:
            queries = layer.attention.query_norm(both[:, :heads])
            both = torch.cat((queries, layer.attention.key_norm(both[:, heads:])), 1)
        if turn is not None:
            both = torch.addcmul(both * turn[0], both.roll(size // 2, -1), turn[1])
        keys, values, (mask, is_causal) = cache.extend(
            number, both.narrow(1, heads, shared), values
        )
        mixed = F.scaled_dot_product_attention(
            both.narrow(1, 0, heads),
            keys,
            values,
            attn_mask=mask,
            is_causal=is_causal,
            enable_gqa=shared != heads,
        )
        return _added(x, mixed.reshape(len(x), heads * size), layer.out)

    def _mlp(self, x: Tensor, layer: Layer) -> Tensor:
        """x (batch, width) plus what the MLP adds to it."""
        up = F.linear(_normalised(x, layer.mlp_norm), *layer.up)
        activation, hidden = self.config.activation, self.config.hidden_features
        if activation == "swiglu":
            changed = F.silu(up.narrow(1, 0, hidden)).mul_(up.narrow(1, hidden, hidden))
        elif activation == "relu2":
            changed = F.relu(up).square_()
        else:
            changed = F.gelu(up, approximate="none" if activation == "gelu" else "tanh")
        return _added(x, changed, layer.down)


def _layer(block: Any, config: TransformerConfig) -> Layer:
    attention, mlp = block.attention, block.mlp
    into = [attention.query, attention.key, attention.value]
    up = [mlp.gate, mlp.up] if config.activation == "swiglu" else [mlp.up]
    return Layer(
        norm=block.attention_norm,
        into=_fused(into, block.attention_norm),
        out=(attention.output.weight.t(), attention.output.bias),
        mlp_norm=block.mlp_norm,
        up=_fused(up, block.mlp_norm),
        down=(mlp.down.weight.t(), mlp.down.bias),
        attention=attention,
    )


def _fused(linears: list[Any], norm: nn.Module) -> tuple[Tensor, Tensor | None]:
    """One matrix and bias of several, with the gain of the norm before them if it is an RMSNorm."""
    weight = torch.cat([linear.weight for linear in linears])
    if isinstance(norm, nn.RMSNorm):
        weight = weight * norm.weight
    has_bias = linears[0].bias is not None
    return weight, torch.cat([linear.bias for linear in linears]) if has_bias else None


def _normalised(x: Tensor, norm: Any) -> Tensor:
    """`norm(x)`, of an RMSNorm without its gain: x / sqrt(mean(x²) + eps)."""
    if isinstance(norm, nn.LayerNorm):
        return F.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    scale: Tensor = length.square_().div_(x.shape[-1]).add_(norm.eps).rsqrt_()
    return x * scale


def _added(x: Tensor, change: Tensor, linear: tuple[Tensor, Tensor | None]) -> Tensor:
    """x + the product of `change` with the transposed weight, + bias."""
    weight, bias = linear
    found = torch.addmm(x, change, weight)
    return found if bias is None else found.add_(bias)
