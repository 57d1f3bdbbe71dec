"""Temperature, calibration error and thresholds, against scipy, torchmetrics and brute force."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score
from torchmetrics.functional.classification import (
    binary_calibration_error,
    multiclass_calibration_error,
)

from trueloop.calibration import best_threshold, calibration_of, fit_temperature

SCORES = {"f1": f1_score, "accuracy": accuracy_score, "balanced_accuracy": balanced_accuracy_score}


def drawn(classes: int, scale: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits that are `scale` times too sure of targets that were drawn from them."""
    draws = np.random.default_rng(seed)
    logits = draws.normal(size=(400, classes)) * 1.5
    shares = np.exp(log_softmax(logits, axis=1))
    targets = np.array([draws.choice(classes, p=row) for row in shares])
    return torch.from_numpy(scale * logits).float(), torch.from_numpy(targets)


@pytest.mark.parametrize("scale", [0.4, 1.0, 5.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_the_temperature_is_scipys_optimum(classes: int, scale: float) -> None:
    logits, targets = drawn(classes, scale)
    if classes == 2:
        logits = logits[:, 1] - logits[:, 0]
        z = np.stack((np.zeros(400), logits.double().numpy()), axis=1)
    else:
        z = logits.double().numpy()

    def loss(log_t: float) -> float:
        return -log_softmax(z / np.exp(log_t), axis=1)[np.arange(400), targets.numpy()].mean()

    best = minimize_scalar(loss, bracket=(-1, 1), tol=1e-12)
    assert fit_temperature(logits, targets) == pytest.approx(float(np.exp(best.x)), rel=1e-5)
    found = calibration_of(logits, targets)
    assert found is not None
    assert found["before"]["loss"] == pytest.approx(loss(0.0))
    assert found["after"]["loss"] == pytest.approx(best.fun)


def test_the_calibration_error_is_that_of_torchmetrics() -> None:
    logits, targets = drawn(4, 3.0, 1)
    found = calibration_of(logits, targets)
    assert found is not None
    theirs = multiclass_calibration_error(logits.double().softmax(1), targets, 4, n_bins=15)
    assert found["before"]["ece"] == pytest.approx(float(theirs), abs=1e-6)
    assert found["after"]["ece"] < found["before"]["ece"]
    assert sum(each["share"] for each in found["before"]["bins"]) == pytest.approx(1)
    assert "thresholds" not in found

    logits, targets = drawn(2, 3.0, 2)
    binary = logits[:, 1:] - logits[:, :1]
    found = calibration_of(binary, targets[:, None].float())
    assert found is not None
    theirs = binary_calibration_error(binary[:, 0].double().sigmoid(), targets, n_bins=15)
    assert found["before"]["ece"] == pytest.approx(float(theirs), abs=1e-6)
    assert set(found["thresholds"]) == set(SCORES)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.55, 0.9]), st.booleans()), min_size=4),
    st.sampled_from(sorted(SCORES)),
)
def test_no_threshold_is_better(rows: list[tuple[float, bool]], metric: str) -> None:
    shares = np.array([share for share, _ in rows])
    targets = np.array([float(target) for _, target in rows])
    if len(set(targets)) < 2:
        return
    at, score = best_threshold(shares, targets, metric)
    every = [0.0, 1.0, *shares, *(shares + 1e-3)]
    tried = [SCORES[metric](targets, shares > one) for one in every]
    assert score == pytest.approx(max(tried))
    assert SCORES[metric](targets, shares > at) == pytest.approx(score)


def test_what_is_not_a_classifier_has_none() -> None:
    assert calibration_of(torch.tensor([1.0, float("nan")]), torch.tensor([0, 1])) is None
    assert calibration_of(torch.zeros(3, 2, 2), torch.zeros(3, dtype=torch.int64)) is None
    assert calibration_of(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64)) is None
