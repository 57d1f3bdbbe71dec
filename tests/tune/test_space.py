"""The space of a search: what it is read as, and what is wrong with it in one line with the key."""

from __future__ import annotations

from typing import Any

import pytest

from trueloop.errors import ConfigError
from trueloop.tune.space import Choices, Range, parse_space, plain_space

KNOWN = {"lr", "batch_size", "optimizer", "epochs"}


def test_ranges_and_choices_are_read_and_written_back() -> None:
    content = {
        "lr": {"low": "1e-4", "high": 0.1, "log": True},
        "batch-size": {"low": 16, "high": 64, "step": 16},
        "optimizer": ["sgd", "adamw"],
    }
    space = parse_space(content, "space.yaml", KNOWN, [])
    assert space["lr"] == Range(low=1e-4, high=0.1, log=True)
    whole = space["batch_size"]
    assert isinstance(whole, Range)
    assert whole.is_whole
    assert space["optimizer"] == Choices(values=("sgd", "adamw"))
    assert parse_space(plain_space(space), "again", KNOWN, []) == space


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "searches nothing"),
        ({"learning_rate": [1, 2]}, "unknown option 'learning_rate': did you mean 'lr'?"),
        ({"monitor": ["a", "b"]}, "monitor cannot be searched"),
        ({"epochs": [1, 2]}, "epochs is searched, and --epochs gives it one value"),
        ({"lr": 0.1}, "lr: 0.1 is one value"),
        ({"lr": [0.1]}, "lr has 1 choices"),
        ({"lr": [0.1, 0.1]}, "the choice 0.1 is given twice"),
        ({"lr": [[1], 2]}, "the choice [1] is not a plain value"),
        ({"lr": {"low": 1}}, "lr has no 'high'"),
        ({"lr": {"low": 1, "high": 2, "lag": True}}, "unknown key 'lag': did you mean 'log'?"),
        ({"lr": {"low": 2, "high": 1}}, "low 2 is not below high 1"),
        ({"lr": {"low": 0, "high": 1, "log": True}}, "a log range begins above 0"),
        ({"lr": {"low": "a", "high": 1}}, "lr: low is 'a', not a number"),
        ({"lr": {"low": float("nan"), "high": 1}}, "lr: low is nan, not a number"),
        ({"lr": {"low": 1, "high": 2, "step": 3}}, "step 3 fits nowhere"),
        ({"lr": {"low": 1, "high": 2, "step": 1, "log": True}}, "do not go together"),
        ({"lr": {"low": 1, "high": 2, "log": "yes please"}}, "log is 'yes please'"),
        ({"lr": [1, 2], "--lr": [1, 2]}, "is given twice"),
    ],
)
def test_a_mistake_names_its_key(content: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_space(content, "space.yaml", KNOWN, ["epochs"])
    assert words in str(caught.value)
    assert str(caught.value).startswith("space.yaml")
