"""The scores of a language model: sums over rows of tokens, from which the scores follow.

A batch's logits are hundreds of times as large as the batch. They are summed up at once, row by
row, so that an evaluation of any length keeps a few numbers of each row.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from trueloop.metrics import MetricSet
from trueloop.metrics._base import double
from trueloop.tasks.text.context_windows import IGNORE


class RowSums(NamedTuple):
    """Sums over the positions of each row that are predicted."""

    nats: Tensor
    """Negative log-likelihood; (rows,), float64 (float32 on devices without it)."""
    counts: Tensor
    """Predicted tokens and their bytes of UTF-8; (rows, 2), int64."""


def row_sums(logits: Tensor, targets: Tensor, bytes_per_token: Tensor) -> RowSums:
    """The sums of a batch; logits (rows, length, vocabulary), targets int64 (rows, length) with
    -100 where nothing is predicted, `bytes_per_token` int64 (vocabulary,)."""
    losses = F.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORE, reduction="none"
    )
    counts = targets != IGNORE
    sizes = bytes_per_token[targets.clamp(min=0)] * counts
    nats = double(losses).view_as(targets).sum(dim=1)
    return RowSums(nats, torch.stack((counts.sum(dim=1), sizes.sum(dim=1)), dim=1))


class TextScores(MetricSet):
    """Perplexity and bits per byte over all tokens, on any number of ranks.

    perplexity = exp(nats / tokens). bits_per_byte = nats / (ln 2 · bytes), where the bytes are
    those of the predicted tokens as UTF-8: unlike the loss and the perplexity it compares models of
    different tokenizers. NaN if tokens have no text.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        # Tensors made under inference mode could not be added to outside it.
        with torch.inference_mode(False):
            self.nats = torch.zeros((), dtype=torch.float64)
            self.counts = torch.zeros(2, dtype=torch.int64)
        self._rows: list[tuple[Tensor, Tensor]] = []

    reductions = {"nats": "sum", "counts": "sum"}  # noqa: RUF012 - read only

    def update(self, outputs: Any, targets: Any) -> None:
        """Take in `RowSums.nats` and `RowSums.counts` of a batch."""
        self._rows.append((outputs.sum(), targets.sum(dim=0)))

    def _fold(self) -> None:
        """Add up on the host, in the order of the batches: that waits for the device once."""
        rows, self._rows = self._rows, []
        for nats, counts in rows:
            self.nats = self.nats + nats.cpu().double()
            self.counts = self.counts + counts.cpu()

    def _local(self) -> dict[str, Any]:
        self._fold()
        return super()._local()

    def compute(self) -> dict[str, float]:
        self._fold()
        tokens, size = self.counts.tolist()
        return scores(float(self.nats), tokens, size)


def scores(nats: float, tokens: int, size: int) -> dict[str, float]:
    """Perplexity and bits per byte of so many nats over so many tokens and bytes."""
    if not tokens:
        return {"perplexity": math.nan, "bits_per_byte": math.nan}
    mean = nats / tokens
    return {
        "perplexity": math.exp(mean) if mean < 700 else math.inf,
        "bits_per_byte": nats / (math.log(2) * size) if size else math.nan,
    }
