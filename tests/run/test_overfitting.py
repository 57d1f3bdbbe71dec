import math

import numpy as np
import pytest

from trueloop.run.report import overfitting


def verdict(val: list[float], train: list[float] | None = None) -> tuple[str, str]:
    lines = [{"epoch": k, "val_loss": v} for k, v in enumerate(val, start=1)]
    if train is not None:
        lines = [{**line, "train_loss": t} for line, t in zip(lines, train, strict=True)]
    return overfitting(lines)


FALLING = [2.0 * 0.8**k for k in range(20)]
RISEN = [2.0 - 0.15 * k for k in range(12)] + [0.35 + 0.01 * k for k in range(1, 9)]
"""Lowest in epoch 12 at 0.35, then to 0.43: the median of the last four is 19% higher."""


def test_overfitting_is_dated() -> None:
    status, sentence = verdict(RISEN, FALLING)
    assert status == "overfitting"
    assert "rose 19% from its minimum at epoch 12" in sentence
    assert "training loss kept falling" in sentence
    assert sentence.endswith("overfitting since epoch 12.")


def test_a_rise_without_a_training_loss_is_overfitting_by_all_appearances() -> None:
    status, sentence = verdict(RISEN)
    assert status == "overfitting"
    assert "no training loss was logged" in sentence


def test_a_rise_of_both_losses_is_unstable_training() -> None:
    status, sentence = verdict(RISEN, RISEN)
    assert status == "unstable"
    assert "not overfitting" in sentence


def test_falling_curves_do_not_overfit() -> None:
    status, sentence = verdict(FALLING, FALLING)
    assert status == "not overfitting"
    assert "still falling" in sentence
    assert "more epochs may help" in sentence


def test_a_flat_end_is_no_overfitting_and_asks_for_no_more() -> None:
    flat = [1.0, 0.5, 0.3, 0.2, 0.199, *[0.2] * 15]
    status, sentence = verdict(flat, FALLING)
    assert status == "not overfitting"
    assert "at epoch 5" in sentence
    assert "more epochs" not in sentence


def test_noise_is_no_overfitting() -> None:
    # The minimum of a noisy flat curve always lies below its end.
    said = set()
    for seed in range(40):
        draws = np.random.default_rng(seed)
        flat = 0.2 * np.exp(draws.normal(0, 0.2, 40))
        said.add(verdict([1.0, 0.8, 0.6, 0.4, 0.3, *flat], [1 / (k + 1) for k in range(45)])[0])
    assert said == {"not overfitting"}


def test_overfitting_is_seen_through_noise() -> None:
    for seed in range(20):
        draws = np.random.default_rng(seed)
        rising = 0.3 + 0.01 * np.abs(np.arange(60) - 20) * np.exp(draws.normal(0, 0.1, 60))
        status, sentence = verdict(rising.tolist(), [1 / (k + 1) for k in range(60)])
        assert status == "overfitting", sentence


def test_one_bad_last_epoch_decides_nothing() -> None:
    assert verdict([*FALLING, 1.0], [*FALLING, 0.01])[0] == "not overfitting"


def test_a_rise_of_more_than_threefold_is_said_as_a_multiple() -> None:
    status, sentence = verdict([1.0, 0.5, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.1], FALLING[:9])
    assert status == "overfitting"
    assert "rose to 10.0 times its minimum at epoch 3" in sentence


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_divergence(bad: float) -> None:
    status, sentence = verdict([1.0, 0.9, 0.8, 0.7, bad, bad])
    assert status == "diverged"
    assert "from epoch 5 on" in sentence


def test_too_little_to_say() -> None:
    assert overfitting([])[0] == "no validation"
    assert overfitting([{"epoch": 0, "train_loss": 1.0}])[0] == "no validation"
    assert verdict([1.0])[0] == "too short to say"
    assert verdict([1.0, 2.0, 3.0, 4.0]) == (
        "too short to say",
        "4 epochs with a validation loss are too few to say whether the run overfits.",
    )


@pytest.mark.parametrize("val", [[0.0] * 8, [-1.0] * 8, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
def test_zero_and_negative_losses_are_judged(val: list[float]) -> None:
    assert verdict(val)[0] == "not overfitting"
