"""What a loss_fn returns, sizes of batches, and which way a score should go."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from trueloop import records
from trueloop.errors import nearest


@pytest.mark.parametrize(
    ("batch", "samples"),
    [
        (torch.ones(3, 2), 3),
        ((torch.ones(4), torch.ones(9)), 4),
        ({"scale": torch.tensor(2.0), "x": [torch.ones(5, 1)]}, 5),
        ({"name": "a", "n": 3}, None),
        ("text", None),
        (torch.tensor(1.0), None),
    ],
)
def test_samples_of_a_batch(batch: Any, samples: int | None) -> None:
    assert records.batch_samples(batch) == samples


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("val_loss", "min"), ("loss", "min"), ("val_accuracy", "max"), ("test_top5", "max"),
        ("val_r2", "max"), ("val_rmse", "min"), ("val_f1_macro", "max"), ("val_auroc", "max"),
        ("perplexity", "min"), ("val_something", None), ("val_mean_iou", "max"),
    ],
)  # fmt: skip
def test_direction(name: str, expected: str | None) -> None:
    assert records.direction(name) == expected


def test_better() -> None:
    nan = float("nan")
    assert records.is_better(1.0, None, "min")
    assert records.is_better(1.0, nan, "max")
    assert not records.is_better(nan, None, "min")
    assert records.is_better(0.9, 1.0, "min")
    assert not records.is_better(1.0, 1.0, "max")
    assert not records.is_better(0.95, 1.0, "min", 0.1)


def test_the_end_of_a_message_about_an_unknown_name() -> None:
    assert nearest("pric", ["price", "carat"]) == "did you mean 'price'?"
    assert nearest("zzz", ["b", "a"]) == "known: 'a', 'b'"
    assert nearest("zzz", []) == ""
