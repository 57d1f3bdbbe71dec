"""Micro-batch windows whose gradient is the gradient of their union.

The mean over a union of micro-batches with losses L_i (means over n_i samples or tokens) is
sum(n_i L_i) / sum(n_i). The denominator is known only when the window closes, so each micro-batch
is weighted by n_i / (size · n_1), which is exactly 1/size for equal micro-batches, as a loop by
hand would do it, and what a ragged or short window leaves over, size · n_1 / sum(n_i), is applied
once to the gradient at the end.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueloop.errors import ConfigError
from trueloop.records import Count

Number = int | float | Tensor


class Window:
    """The micro-batches of one update, from its first `weigh` to `close`."""

    def __init__(self, size: int) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ConfigError(
                f"accumulate={size!r} is no whole number of micro-batches: write 1 or more"
            )
        self.size = size
        self.close()

    def close(self) -> None:
        """Empty the window for the next update."""
        self.micro_batches = 0
        self.samples = 0
        self.losses: list[Tensor] = []
        self._counts: list[Number] = []

    @property
    def is_open(self) -> bool:
        return self.micro_batches > 0

    @property
    def is_full(self) -> bool:
        return self.micro_batches >= self.size

    def weigh(self, loss: Tensor, count: Count | None, samples: int) -> Tensor:
        """Take in one micro-batch's mean loss; returns the loss to call backward on."""
        self.micro_batches += 1
        self.samples += samples
        self.losses.append(loss.detach())
        if self.size == 1:
            return loss
        n = samples if count is None else count() if callable(count) else count
        if isinstance(n, Tensor):
            # A quotient of integers would be float32 whatever the loss is.
            n = n.to(torch.promote_types(loss.dtype, torch.float32))
        self._counts.append(n)
        reference = self._reference()
        if isinstance(n, Tensor) or isinstance(reference, Tensor):
            return loss * (n / (self.size * reference))
        return loss / self.size if n == reference else loss * (n / (self.size * reference))

    def _reference(self) -> Number:
        """The first micro-batch's count, or 1 if that was 0 (every target of it ignored)."""
        first = self._counts[0]
        if isinstance(first, Tensor):
            return torch.where(first > 0, first, torch.ones_like(first))
        return first if first > 0 else 1

    def correction(self) -> float | Tensor:
        """What the summed gradient still has to be multiplied by: 1.0 for a full, even window."""
        if self.size == 1:
            return 1.0
        total, reference = sum(self._counts), self._reference()
        if isinstance(total, Tensor):
            return self.size * reference / torch.where(total > 0, total, torch.ones_like(total))
        return self.size * reference / total if total > 0 else 1.0

    def mean_loss(self) -> Tensor:
        """The mean loss over the window so far: a detached scalar."""
        if len(self.losses) == 1:
            return self.losses[0]
        weights = [torch.as_tensor(n, device=self.losses[0].device) for n in self._counts]
        stacked = torch.stack([weight.to(self.losses[0].dtype) for weight in weights])
        return (torch.stack(self.losses) * stacked).sum() / stacked.sum()

    def state_dict(self) -> dict[str, Any]:
        return {
            "micro_batches": self.micro_batches,
            "samples": self.samples,
            "losses": list(self.losses),
            "counts": list(self._counts),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.micro_batches = state["micro_batches"]
        self.samples = state["samples"]
        self.losses = list(state["losses"])
        self._counts = list(state["counts"])
