"""Means of the loss and its parts over many updates, weighted by samples, without a wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from trueloop.records import StepRecord

_FOLD = 256


class Means:
    """The mean loss, and that of each of its named parts, of the updates so far.

    Updates are kept apart until there are 256 of them, then added up on their device. A state does
    not grow with a long stretch of them, and no sum depends on when it is taken.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset all sums."""
        self._updates: list[tuple[dict[str, Tensor], int]] = []
        self._sums: dict[str, tuple[Tensor, int]] = {}

    def add(self, record: StepRecord) -> None:
        """Take in an update, without reading its tensors."""
        self._updates.append(({"loss": record.loss, **record.parts}, record.samples))
        if len(self._updates) == _FOLD:
            self._fold()

    def _fold(self) -> None:
        names = dict.fromkeys(name for means, _ in self._updates for name in means)
        for name in names:
            kept = [(means[name], n) for means, n in self._updates if name in means]
            values = torch.stack([value for value, _ in kept])
            wide = values if values.device.type == "mps" else values.double()
            weights = torch.tensor([n for _, n in kept]).to(wide, non_blocking=True)
            total, weight = self._sums.get(name, (torch.zeros_like(wide[0]), 0))
            self._sums[name] = total + (wide * weights).sum(), weight + sum(n for _, n in kept)
        self._updates = []

    def tensors(self) -> dict[str, Tensor]:
        """The means as scalars on their device, `loss` among them; none before the first update."""
        self._fold()
        return {name: total / weight for name, (total, weight) in self._sums.items()}

    def numbers(self) -> dict[str, float]:
        """The means as numbers, which waits for the device; NaN as `loss` before the first."""
        self._fold()
        means = {name: float(total) / weight for name, (total, weight) in self._sums.items()}
        return {"loss": float("nan"), **means}

    def state_dict(self) -> dict[str, Any]:
        return {
            "updates": [[means, int(n)] for means, n in self._updates],
            "sums": {name: [total, int(n)] for name, (total, n) in self._sums.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        self._updates = [
            ({name: value.to(device) for name, value in means.items()}, n)
            for means, n in state["updates"]
        ]
        self._sums = {name: (total.to(device), n) for name, (total, n) in state["sums"].items()}
