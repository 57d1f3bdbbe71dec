"""Changes of the logits before a token is chosen: small functions that compose.

Each takes logits, floating (rows, vocabulary), and returns new ones of the same shape and dtype;
a token that is ruled out has −inf. Those that go by the text so far also take its tokens, int64
(rows, length); texts of different lengths are padded on the left, and `starts` (rows,) says where
each begins.

`generate` applies them in this order, which is transformers' (`_get_logits_processor`):
repetition_penalty, no_repeat_ngram, min_new_tokens; then, where it samples: temperature, top_k,
top_p, min_p, typical. At least one token always stays. On equal logits each gives what the class
of the same name in `transformers.generation.logits_process` gives.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

_RULED_OUT = -math.inf


def temperature(logits: Tensor, value: float) -> Tensor:
    """`logits / value`: below 1 the distribution is sharper, above 1 flatter. `value` is above 0.

    `generate` takes the largest logit of a row from all of it first where `value` is so small that
    logits could overflow.
    """
    return logits / value


def top_k(logits: Tensor, k: int) -> Tensor:
    """Keep the `k` largest logits, and those equal to the k-th (Fan, Lewis and Dauphin,
    "Hierarchical neural story generation", ACL 2018)."""
    least = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits < least, _RULED_OUT)


def top_p(logits: Tensor, p: float) -> Tensor:
    """Nucleus sampling: keep the smallest set of the most probable tokens whose probabilities add
    up to `p` or more (Holtzman et al., "The curious case of neural text degeneration", ICLR 2020).

    Of equally probable tokens at the border the sort decides: those with the larger ids stay on
    the CPU, where short rows are sorted stably.
    """
    ascending, order = logits.sort(dim=-1, descending=False)
    out = ascending.softmax(-1).cumsum(-1) <= 1 - p
    out[..., -1:] = False
    return logits.masked_fill(out.scatter(-1, order, out), _RULED_OUT)


def min_p(logits: Tensor, p: float) -> Tensor:
    """Keep tokens of at least `p` times the probability of the most probable one (Nguyen et al.,
    "Turning up the heat: min-p sampling", ICLR 2025)."""
    probabilities = logits.softmax(-1)
    out = probabilities < p * probabilities.amax(-1, keepdim=True)
    # Without this a row that is all −inf or NaN would lose its last token.
    out.scatter_(-1, probabilities.topk(1, dim=-1).indices, False)
    return logits.masked_fill(out, _RULED_OUT)


def typical(logits: Tensor, mass: float) -> Tensor:
    """Locally typical sampling: keep the tokens whose surprise −log p is nearest to the entropy,
    until their probabilities add up to `mass` (Meister et al., "Locally typical sampling",
    TACL 2023)."""
    log_p = logits.log_softmax(-1)
    entropy = -(log_p * log_p.exp()).nansum(-1, keepdim=True)
    distance, order = (-log_p - entropy).abs().sort(dim=-1, descending=False)
    reached = logits.gather(-1, order).softmax(-1).cumsum(-1)
    last = (reached < mass).sum(-1, keepdim=True).clamp_(max=logits.shape[-1] - 1)
    out = distance > distance.gather(-1, last)
    out[..., :1] = False
    return logits.masked_fill(out.scatter(-1, order, out), _RULED_OUT)


def repetition_penalty(
    logits: Tensor, tokens: Tensor, penalty: float, starts: Tensor | None = None
) -> Tensor:
    """Divide the logit of each token that the text already has by `penalty` where it is positive,
    else multiply it (Keskar et al., "CTRL", 2019): above 1 repeats less, below 1 more."""
    if starts is not None:
        # What lies before a row's text goes to a column of its own, which is cut off again.
        tokens = tokens.masked_fill(_columns(tokens) < starts[:, None], logits.shape[-1])
    wide = F.pad(logits, (0, 1))
    score = wide.gather(1, tokens)
    score = torch.where(score < 0, score * penalty, score / penalty)
    return wide.scatter(1, tokens, score)[:, :-1]


def no_repeat_ngram(
    logits: Tensor, tokens: Tensor, size: int, starts: Tensor | None = None
) -> Tensor:
    """Rule out each token that would repeat a run of `size` tokens of the text (Paulus, Xiong and
    Socher, "A deep reinforced model for abstractive summarization", ICLR 2018)."""
    rows, length = tokens.shape
    if length < size:
        return logits
    runs = tokens.unfold(1, size, 1)
    same = (runs[..., :-1] == tokens[:, None, length + 1 - size :]).all(-1)
    if starts is not None:
        same &= _columns(tokens)[: runs.shape[1]] >= starts[:, None]
    banned = torch.zeros(rows, logits.shape[-1] + 1, dtype=torch.bool, device=logits.device)
    banned.scatter_(1, runs[..., -1].masked_fill(~same, logits.shape[-1]), True)
    return logits.masked_fill(banned[:, :-1], _RULED_OUT)


def without(logits: Tensor, tokens: Tensor) -> Tensor:
    """Rule out `tokens`, int64 (count,), in every row."""
    return logits.index_fill(-1, tokens, _RULED_OUT)


def _columns(tokens: Tensor) -> Tensor:
    return torch.arange(tokens.shape[1], device=tokens.device)
