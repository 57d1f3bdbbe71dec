"""The space of a search: what it is read as, and what is wrong with it in one line with the key."""

from __future__ import annotations

from typing import Any

import pytest

from trueloop.errors import ConfigError
from trueloop.tune.space import Choices, Range, parse_space, plain_space
from trueloop.tune.study import _pruner, import_optuna

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


@pytest.mark.parametrize("pruner", ["hyperband", "median", "none"])
def test_a_pruner_ends_what_promises_little(pruner: str) -> None:
    """Eight good trials of nine evaluations, then a bad one, which only a pruner ends."""
    optuna = import_optuna()
    study = optuna.create_study(study_name="s", pruner=_pruner(optuna, pruner, 9))
    ended_at = []
    for k in range(12):
        trial, ended = study.ask(), 9
        for step in range(1, 10):
            trial.report((100.0 if k >= 8 else 1.0 + k / 100) / step, step)
            if trial.should_prune():
                ended = step
                break
        study.tell(trial, 0.0 if ended == 9 else None,
                   state=None if ended == 9 else optuna.trial.TrialState.PRUNED)  # fmt: skip
        ended_at.append(ended)
    bad = ended_at[8:]
    assert (max(bad) == 9) == (pruner == "none") or min(bad) < 9
    assert (min(bad) < 9) == (pruner != "none")
