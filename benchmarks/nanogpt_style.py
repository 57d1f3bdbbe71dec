"""A small GPT and its training loop as nanoGPT's readers write them: what ours is compared with.

Written from nanoGPT's published description and hyper-parameters: one fused projection for queries,
keys and values, learned positions, LayerNorm without biases, GELU, tied embeddings, weights drawn
with 0.02 and residual projections with 0.02 / sqrt(2 layers); batches from random places of the
ids; AdamW with decay on matrices; linear warm-up, then cosine to a tenth.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width, bias=False)
        self.c_proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, bias=False)
        self.attn = SelfAttention(width, heads)
        self.ln_2 = nn.LayerNorm(width, bias=False)
        self.c_fc = nn.Linear(width, 4 * width, bias=False)
        self.c_proj = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, vocab: int, context: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.context = context
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width, bias=False)
        self.lm_head = nn.Linear(width, vocab, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                scale = math.sqrt(2 * layers) if name.endswith("c_proj.weight") else 1.0
                nn.init.normal_(parameter, std=0.02 / scale)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx: Tensor, targets: Tensor) -> Tensor:
        """The mean cross-entropy."""
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1], device=idx.device))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def make_optimizer(model: nn.Module, *, fused: bool) -> torch.optim.AdamW:
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    rest = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), fused=fused)


def rate(iteration: int, iterations: int, *, warmup: int = 100) -> float:
    """Learning rate: 1e-3 after the warm-up, 1e-4 at the end."""
    if iteration < warmup:
        return 1e-3 * (iteration + 1) / (warmup + 1)
    share = (iteration - warmup) / max(iterations - warmup, 1)
    return 1e-4 + 0.5 * (1 + math.cos(math.pi * min(share, 1.0))) * 9e-4


def get_batch(ids: Tensor, batch_size: int, context: int) -> tuple[Tensor, Tensor]:
    places = torch.randint(len(ids) - context, (batch_size,))
    x = torch.stack([ids[i : i + context] for i in places])
    y = torch.stack([ids[i + 1 : i + 1 + context] for i in places])
    return x, y


def update(model: GPT, optimizer: torch.optim.AdamW, ids: Tensor, size: int, lr: float) -> float:
    """One iteration; its loss, read as the loop's own log line reads it."""
    for group in optimizer.param_groups:
        group["lr"] = lr
    loss = model(*get_batch(ids, size, model.context))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.item()


@torch.no_grad()
def whole_loss(model: GPT, ids: Tensor) -> float:
    """Nats per token over all of `ids` but the first, in consecutive windows of the context."""
    total = 0.0
    for start in range(0, len(ids) - 1, model.context):
        part = ids[start : start + model.context + 1]
        total += float(model(part[None, :-1], part[None, 1:])) * (len(part) - 1)
    return total / (len(ids) - 1)
