"""Probabilities that can be trusted: temperature scaling, calibration error, the best threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Floats = npt.NDArray[np.float64]

BINS = 15
"""Of the reliability diagram, and of the expected calibration error."""
METRICS = ("f1", "accuracy", "balanced_accuracy")
"""The metrics that a threshold is chosen for."""
_COLDEST, _HOTTEST = 1e-2, 1e2
_HALVINGS = 80


def fit_temperature(logits: Tensor, targets: Tensor) -> float:
    """The number by which logits are divided so that the negative log-likelihood is least.

    Guo et al., "On calibration of modern neural networks" (ICML 2017). The loss is convex in
    1 / temperature; its derivative is bisected in float64, between temperatures of 0.01 and 100.

    Args:
        logits: (N, classes); or (N,) of the second of two classes.
        targets: class indices, (N,).

    Returns:
        The temperature.
    """
    z, y = logits.double(), targets.long()
    if z.ndim == 1:
        z = torch.stack((torch.zeros_like(z), z), dim=1)
    right = z.gather(1, y[:, None]).squeeze(1)

    def slope(beta: float) -> float:
        return float(((torch.softmax(beta * z, dim=1) * z).sum(dim=1) - right).mean())

    low, high = np.log(1 / _HOTTEST), np.log(1 / _COLDEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(float(np.exp(middle))) < 0 else (low, middle)
    return float(np.exp(-(low + high) / 2))


def reliability(confidence: Floats, correct: Floats, bins: int = BINS) -> list[dict[str, float]]:
    """The bins of a reliability diagram that have samples.

    Args:
        confidence: probabilities, (N,).
        correct: whether each came true, 0 or 1, (N,).
        bins: how many of equal width there are from 0 to 1.

    Returns:
        Of each bin its mean `confidence`, the share `correct`, and the `share` of the samples.
    """
    place = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    found = []
    for number in np.unique(place):
        own = place == number
        found.append(
            {
                "confidence": float(confidence[own].mean()),
                "correct": float(correct[own].mean()),
                "share": float(own.mean()),
            }
        )
    return found


def calibration_error(bins: list[dict[str, float]]) -> float:
    """The expected calibration error (ECE): the mean distance of confidence from what came true."""
    return sum(each["share"] * abs(each["confidence"] - each["correct"]) for each in bins)


def best_threshold(probabilities: Floats, targets: Floats, metric: str) -> tuple[float, float]:
    """The probability from which on a sample counts as positive, so that the metric is largest.

    Args:
        probabilities: of the positive class, (N,).
        targets: 0 or 1, (N,).
        metric: one of `METRICS`.

    Returns:
        A threshold half-way between two of the probabilities, and the metric there: a sample is
        positive if its probability is larger.
    """
    order = np.argsort(-probabilities, kind="stable")
    sorted_p, hits = probabilities[order], targets[order]
    # After k samples: the k most probable ones count as positive.
    true = np.concatenate(([0.0], np.cumsum(hits)))
    count = np.arange(len(hits) + 1)
    positives, negatives = true[-1], len(hits) - true[-1]
    rejected = negatives - (count - true)
    if metric == "f1":
        scores = 2 * true / np.maximum(count + positives, 1)
    elif metric == "accuracy":
        scores = (true + rejected) / len(hits)
    else:
        scores = (true / max(positives, 1) + rejected / max(negatives, 1)) / 2
    edges = np.concatenate(([1.0], (sorted_p[:-1] + sorted_p[1:]) / 2, [0.0]))
    # Equal probabilities fall on one side together.
    possible = np.concatenate(([True], sorted_p[:-1] > sorted_p[1:], [sorted_p[-1] > 0]))
    best = int(np.argmax(np.where(possible, scores, -1.0)))
    return float(edges[best]), float(scores[best])


def calibration_of(logits: Tensor, targets: Tensor) -> dict[str, Any] | None:
    """The calibration of a classifier by its validation samples, for results.json.

    Args:
        logits: (N, classes); or (N,) or (N, 1) of the second of two classes.
        targets: class indices, (N,) or (N, 1).

    Returns:
        The temperature; loss, calibration error and bins without and with it; of two classes the
        best thresholds. None for outputs that are not finite, or of a different form.
    """
    logits, targets = logits.detach().cpu(), targets.detach().cpu()
    if logits.ndim == 2 and logits.shape[1] == 1:
        logits, targets = logits[:, 0], targets.reshape(-1)
    if logits.ndim not in (1, 2) or targets.ndim != 1 or len(logits) != len(targets):
        return None
    if not len(logits) or not bool(logits.isfinite().all()):
        return None
    temperature = fit_temperature(logits, targets)
    found: dict[str, Any] = {"temperature": temperature}
    for name, z in (("before", logits.double()), ("after", logits.double() / temperature)):
        confidence, correct, loss = _confidence(z, targets.long())
        bins = reliability(confidence, correct)
        found[name] = {"loss": loss, "ece": calibration_error(bins), "bins": bins}
    if logits.ndim == 1:
        shares = torch.sigmoid(logits.double()).numpy()
        chosen = {m: best_threshold(shares, targets.double().numpy(), m) for m in METRICS}
        found["thresholds"] = {
            metric: {"threshold": at, "score": score} for metric, (at, score) in chosen.items()
        }
    return found


def _confidence(logits: Tensor, targets: Tensor) -> tuple[Floats, Floats, float]:
    """Of two classes the probability of the second and whether it is that; of more the largest
    probability and whether it is right. And the mean negative log-likelihood."""
    if logits.ndim == 1:
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets.double())
        return torch.sigmoid(logits).numpy(), targets.double().numpy(), float(loss)
    loss = torch.nn.functional.cross_entropy(logits, targets)
    best = torch.softmax(logits, dim=1).max(dim=1)
    return best.values.numpy(), (best.indices == targets).double().numpy(), float(loss)
