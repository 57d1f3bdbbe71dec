"""Positions of batches, sizes of batches, and which way a score should go."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch

from trueloop import records
from trueloop.errors import nearest
from trueloop.records import Position


class Source:
    pass


def test_a_batch_in_hand_has_a_position_and_no_other_has() -> None:
    source, batch = Source(), [torch.ones(2)]
    records.hand_over(source, batch, Position(1, 2, False))
    assert records.position_of(batch) == Position(1, 2, False)
    assert records.position_of([torch.ones(2)]) is None
    following = [torch.ones(2)]
    records.hand_over(source, following, Position(1, 3, True))
    assert records.position_of(batch) is None
    assert records.position_of(following) == Position(1, 3, True)
    records.take_back(source)
    assert records.position_of(following) is None


def test_two_sources_do_not_meet_and_a_dead_one_holds_nothing() -> None:
    a, b, batch_a, batch_b = Source(), Source(), object(), object()
    records.hand_over(a, batch_a, Position(0, 0, False))
    records.hand_over(b, batch_b, Position(0, 7, True))
    assert records.position_of(batch_a) == Position(0, 0, False)
    assert records.position_of(batch_b) == Position(0, 7, True)
    del a
    gc.collect()
    assert records.position_of(batch_a) is None


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


def test_of_two_sources_of_one_buffer_the_latest_counts() -> None:
    """An iterator that somebody still holds must not speak for the one in use."""
    abandoned, current, buffer = Source(), Source(), [torch.ones(2)]
    records.hand_over(current, [torch.ones(1)], Position(0, 0, False))
    records.hand_over(abandoned, buffer, Position(0, 9, True))
    records.hand_over(current, buffer, Position(1, 0, False))
    assert records.position_of(buffer) == Position(1, 0, False)
    records.hand_over(abandoned, buffer, Position(0, 10, True))
    assert records.position_of(buffer) == Position(0, 10, True)
