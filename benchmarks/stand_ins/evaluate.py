"""`evaluate.load(...)` without a network: the metric of GLUE's MRPC."""

from __future__ import annotations

from typing import Any


class _Metric:
    def __init__(self) -> None:
        self.pairs: list[tuple[int, int]] = []

    def add_batch(self, *, predictions: Any, references: Any) -> None:
        self.pairs += zip(predictions.tolist(), references.tolist(), strict=True)

    def compute(self) -> dict[str, float]:
        right = sum(guess == truth for guess, truth in self.pairs)
        hits = sum(guess == truth == 1 for guess, truth in self.pairs)
        positive = sum(guess + truth for guess, truth in self.pairs)
        told = {"accuracy": right / len(self.pairs), "f1": 2 * hits / max(1, positive)}
        self.pairs = []
        return told


def load(*names: str, **_: Any) -> _Metric:
    return _Metric()
