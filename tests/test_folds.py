"""Folds and cross-validation, compared with scikit-learn's."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, PredefinedSplit, StratifiedKFold, cross_val_score
from torch import nn

import trueloop
from on_ranks import on_ranks
from trueloop import optimizers
from trueloop.errors import ConfigError, DataError, RunError, UserError
from trueloop.folds import Fold, group_folds, plus_minus, stratified_folds


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=8, max_size=90), st.integers(2, 8), st.integers(0, 99))
def test_each_class_is_dealt_evenly(labels: list[int], folds: int, seed: int) -> None:
    fold_of = stratified_folds(labels, folds, seed)
    sizes = np.bincount(fold_of, minlength=folds)
    assert len(fold_of) == len(labels)
    assert sizes.max() - sizes.min() <= 1
    for label in set(labels):
        own = np.bincount(fold_of[np.array(labels) == label], minlength=folds)
        assert own.max() - own.min() <= 1


def test_as_evenly_as_scikit_learn_does_it() -> None:
    labels = np.repeat([0, 1, 2], [61, 28, 11])
    ours, theirs = stratified_folds(labels, 5), np.empty(100, dtype=int)
    for number, (_, val) in enumerate(StratifiedKFold(5).split(labels, labels)):
        theirs[val] = number
    for label in range(3):
        counts = [np.sort(np.bincount(f[labels == label])).tolist() for f in (ours, theirs)]
        assert counts[0] == counts[1]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=30, max_size=120), st.integers(2, 5))
def test_a_group_is_in_one_fold(groups: list[int], folds: int) -> None:
    rows = np.array(groups)
    if len(set(groups)) < folds:
        with pytest.raises(DataError, match="groups cannot be dealt"):
            group_folds(groups, folds)
        return
    fold_of = group_folds(groups, folds, 3)
    for group in set(groups):
        assert len(set(fold_of[rows == group])) == 1
    # scikit-learn's GroupKFold deals in the same way, and so to folds of the same sizes.
    theirs = [len(val) for _, val in GroupKFold(folds).split(rows, groups=rows)]
    assert sorted(np.bincount(fold_of, minlength=folds)) == sorted(theirs)
    assert (group_folds([f"g{g}" for g in groups], folds, 3) >= 0).all()


def test_folds_depend_on_the_seed_only() -> None:
    labels = np.arange(50) % 3
    assert (stratified_folds(labels, 5, 1) == stratified_folds(labels, 5, 1)).all()
    assert (stratified_folds(labels, 5, 1) != stratified_folds(labels, 5, 2)).any()


def test_scores_are_those_of_scikit_learn_on_the_same_folds() -> None:
    inputs, labels = load_iris(return_X_y=True)

    def train(fold: Fold) -> dict[str, float]:
        assert sorted([*fold.train, *fold.val]) == list(range(150))
        model = LogisticRegression(max_iter=500).fit(inputs[fold.train], labels[fold.train])
        return {"accuracy": model.score(inputs[fold.val], labels[fold.val])}

    ours = trueloop.cross_validate(train, labels, folds=5, seed=3)
    folds = PredefinedSplit(stratified_folds(labels, 5, 3))
    theirs = cross_val_score(LogisticRegression(max_iter=500), inputs, labels, cv=folds)
    assert [one["accuracy"] for one in ours.scores] == pytest.approx(theirs.tolist())
    assert ours.mean["accuracy"] == pytest.approx(theirs.mean())
    assert ours.std["accuracy"] == pytest.approx(theirs.std(ddof=1))
    assert str(ours) == f"accuracy {plus_minus(theirs)} (5 folds)"


def test_with_fit() -> None:
    """The scores of the best evaluation, of a run by hand with the same seed; the process's own
    generators are left alone."""
    inputs, labels = (torch.from_numpy(part) for part in load_iris(return_X_y=True))
    inputs = inputs.float()

    def fit(train: Any, val: Any, seed: int) -> trueloop.History:
        model = nn.Linear(4, 3)
        step = trueloop.Step(
            model, optimizers.adam(model, 0.3), trueloop.supervised(nn.CrossEntropyLoss())
        )
        feeds = [
            trueloop.Feed((inputs[rows], labels[rows]), 30, shuffle=rows is train, seed=seed)
            for rows in (train, val)
        ]
        return trueloop.fit(step, *feeds, epochs=3)

    before = torch.get_rng_state(), random.getstate()
    ours = trueloop.cross_validate(
        lambda fold: fit(fold.train, fold.val, fold.seed), len(labels), folds=2, repeats=2, seed=8
    )
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert (ours.folds, ours.repeats, len(ours.scores)) == (2, 2, 4)
    assert "val_loss" in str(ours)
    assert "train_loss" not in str(ours)
    for number, scores in enumerate(ours.scores):
        seed, fold = 8 + number // 2, number % 2
        fold_of = stratified_folds(np.zeros(150), 2, seed)
        trueloop.seed_everything(seed, deterministic=False)
        history = fit(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold), seed)
        assert scores["val_loss"] == history.best


def _validated(path: Path | None, stops_at: int) -> list[dict[str, float]]:
    """The scores of 3 folds, or of those that are done before fold `stops_at` is interrupted."""
    inputs, labels = (torch.from_numpy(part) for part in load_iris(return_X_y=True))
    inputs = inputs.double()

    def train(fold: Fold) -> trueloop.History:
        if fold.number == stops_at:
            raise KeyboardInterrupt
        model = nn.Linear(4, 3).double()
        step = trueloop.Step(
            model,
            optimizers.sgd(model, 0.1),
            trueloop.supervised(nn.CrossEntropyLoss()),
            parallel="ddp",
        )
        feeds = (
            trueloop.Feed((inputs[rows], labels[rows]), 24, shuffle=rows is fold.train)
            for rows in (fold.train, fold.val)
        )
        return trueloop.fit(step, *feeds, epochs=2, progress=False)

    try:
        found = trueloop.cross_validate(train, labels.numpy(), folds=3, seed=4, keep=path)
    except KeyboardInterrupt:
        return []
    return [dict(one) for one in found.scores]


def _interrupted(folder: Path) -> list[dict[str, float]]:
    assert not _validated(folder / "folds.json", 3)
    return _validated(folder / "folds.json", 0)


def test_ranks_train_each_fold_together(tmp_path: Path) -> None:
    one, other = on_ranks(2, _interrupted, tmp_path)
    assert one == other
    assert len(json.loads((tmp_path / "folds.json").read_text())["scores"]) == 3
    for ours, alone in zip(one, _validated(None, 0), strict=True):
        assert ours == pytest.approx(alone, rel=1e-9)


def test_finished_folds_are_kept(tmp_path: Path) -> None:
    path, trained = tmp_path / "folds.json", []

    def train(fold: Fold) -> dict[str, float]:
        if fold.number == 3 and len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(fold.number)
        return {"val_r2": fold.number / 10, "val_nan": float("nan")}

    with pytest.raises(KeyboardInterrupt):
        trueloop.cross_validate(train, 20, folds=4, keep=path)
    trained.append(0)
    found = trueloop.cross_validate(train, 20, folds=4, keep=path)
    assert trained == [1, 2, 0, 3, 4]
    assert [one["val_r2"] for one in found.scores] == [0.1, 0.2, 0.3, 0.4]
    assert len(json.loads(path.read_text())["scores"]) == 4
    for other in ({"folds": 3}, {"seed": 1}, {"repeats": 2}):
        with pytest.raises(RunError, match="a different cross-validation"):
            trueloop.cross_validate(train, 20, keep=path, **{"folds": 4, **other})
    path.write_text("{}")
    with pytest.raises(RunError, match="delete it"):
        trueloop.cross_validate(train, 20, folds=4, keep=path)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.90, 0.93, 0.91], "0.913 ± 0.015"),
        ([0.88, 0.91, 0.94], "0.91 ± 0.03"),
        ([1210.0, 1270.0, 1260.0], "1,247 ± 32"),
        ([0.5, 0.5], "0.5 ± 0"),
        ([0.25], "0.25"),
    ],
)
def test_the_spread_decides_the_digits(values: list[float], shown: str) -> None:
    assert plus_minus(values) == shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"labels": 3, "folds": 5}, "3 samples cannot be dealt into 5 folds"),
        ({"labels": 9, "folds": 1}, "folds=1"),
        ({"labels": [0.5, 0.7, 0.1]}, "labels=len"),
        ({"labels": 9, "groups": [1, 2]}, "groups has the shape"),
        ({"labels": 9, "repeats": 0}, "repeats=0"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        trueloop.cross_validate(lambda fold: {"accuracy": 1.0}, **arguments)


def test_a_training_that_returns_nothing() -> None:
    with pytest.raises(ConfigError, match="let it return what fit or evaluate returned"):
        trueloop.cross_validate(lambda fold: None, 10)
