"""A language model small enough to read: learned positions, attention through the cache."""

from __future__ import annotations

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trueloop.generate import KeyValueCache


class ToyModel(nn.Module):
    """Two layers of attention with grouped queries; random weights that make peaked logits."""

    def __init__(
        self, vocab: int = 17, context: int = 32, *, seed: int = 0, heads: int = 4, kv: int = 2
    ) -> None:
        super().__init__()
        self.config = SimpleNamespace(context=context, vocab_size=vocab)
        self.heads, self.kv, self.width, layers = heads, kv, 4, 2
        size = heads * self.width
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.tokens = nn.Embedding(vocab, size)
            self.places = nn.Embedding(context, size)
            self.queries = nn.ModuleList(nn.Linear(size, size) for _ in range(layers))
            self.pairs = nn.ModuleList(nn.Linear(size, 2 * kv * self.width) for _ in range(layers))
            self.outputs = nn.ModuleList(nn.Linear(size, size) for _ in range(layers))
            self.dropout = nn.Dropout(0.5)
            self.head = nn.Linear(size, vocab)
            for parameter in self.parameters():
                nn.init.normal_(parameter, std=0.5)
        self.double()  # so that a wrong logit is told from a rounded one

    def new_cache(self, batch: int, capacity: int) -> KeyValueCache:
        weight = self.head.weight
        return KeyValueCache(
            layers=len(self.queries),
            batch=batch,
            heads=self.kv,
            capacity=capacity,
            width=self.width,
            dtype=weight.dtype,
            device=weight.device,
        )

    def forward(self, tokens: Tensor, *, cache: KeyValueCache | None = None) -> Tensor:
        batch, length = tokens.shape
        if length > self.config.context:
            raise ValueError("more tokens than the context")
        if cache is None:
            positions = torch.arange(length)[None].expand(batch, length)
        else:
            positions = cache.positions(length)
        x = self.dropout(self.tokens(tokens) + self.places(positions))
        for layer, query in enumerate(self.queries):
            q = query(x).view(batch, length, self.heads, self.width).transpose(1, 2)
            pair = self.pairs[layer](x).view(batch, length, 2, self.kv, self.width)
            k, v = pair.permute(2, 0, 3, 1, 4)
            mask, causal = None, True
            if cache is not None:
                k, v, (mask, causal) = cache.extend(layer, k, v)
            seen = F.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=True
            )
            x = x + self.outputs[layer](seen.transpose(1, 2).reshape(batch, length, -1))
        if cache is not None:
            cache.advance(length)
        logits: Tensor = self.head(x)
        return logits


def table_model(vocab: int, seed: int = 0, scale: float = 3.0):
    """A callable that is no module: the logits are a function of the last token alone."""
    generator = torch.Generator().manual_seed(seed)
    table = scale * torch.randn(vocab, vocab, generator=generator)
    return lambda tokens: table[tokens]
