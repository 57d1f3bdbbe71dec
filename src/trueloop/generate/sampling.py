"""Choosing a token: the largest logit, or a draw that is a function of (seed, row, position)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from trueloop.seed import mix, mix_array

_AHEAD = 64
"""Positions whose draws are computed at once."""


class UniformDraws:
    """A uniform number for each row and position, whatever the other rows are.

    Row r at its n-th new token draws `mix(streams[r], n)`, cut to 52 bits: from 0 to 1, without 1.
    """

    def __init__(self, streams: Sequence[int], device: torch.device) -> None:
        self._streams = list(streams)
        self._device = device
        self._first, self._drawn = 0, torch.empty(0)

    def at(self, position: int) -> Tensor:
        """The rows' numbers at `position`, from 0 on, in order: float64 (rows,); on a device
        without float64, float32."""
        if position - self._first >= len(self._drawn):
            self._first = position
            ahead = np.arange(position, position + _AHEAD, dtype=np.uint64)
            words = np.stack([mix_array(ahead, stream) for stream in self._streams], axis=1)
            dtype, bits = (torch.float32, 23) if self._device.type == "mps" else (torch.float64, 52)
            uniform = (words >> np.uint64(64 - bits)).astype(np.float64) * 2.0**-bits
            self._drawn = torch.from_numpy(uniform).to(self._device, dtype)
        return self._drawn[position - self._first]

    def select(self, rows: Sequence[int]) -> None:
        """Continue only with `rows`."""
        self._streams = [self._streams[row] for row in rows]
        if len(self._drawn):
            self._drawn = self._drawn[:, list(rows)]


def streams(seed: int | Sequence[int], prompts: int, samples: int) -> list[int]:
    """The stream of each row, prompts × samples: of prompt p and sample s by (seed, p, s), or,
    where `seed` has one seed for each prompt, as if it were the only prompt."""
    pairs = [(seed, p) for p in range(prompts)] if isinstance(seed, int) else [(s, 0) for s in seed]
    return [mix(start, prompt, sample) for start, prompt in pairs for sample in range(samples)]


def sample(logits: Tensor, uniform: Tensor) -> Tensor:
    """A token of each row by the inverse of its distribution function: int64 (rows,).

    `logits`: (rows, vocabulary); `uniform`: (rows,), from 0 to below 1. The sums are in float64,
    and a token of probability 0 is never drawn. Where the largest logit is infinite (of a tiny
    temperature, say), those that are equal to it share the row.
    """
    peak = logits.amax(-1, keepdim=True)
    # 0 at the peak by comparison: where it is infinite, inf − inf would be NaN.
    weights = torch.where(logits == peak, 0.0, logits - peak).to(uniform.dtype).exp_()
    reached = weights.cumsum(-1)
    target = uniform[:, None] * reached[:, -1:]
    # Only NaN leaves no token.
    drawn = torch.searchsorted(reached, target, right=True).clamp_(max=logits.shape[-1] - 1)
    return drawn.squeeze(-1)
