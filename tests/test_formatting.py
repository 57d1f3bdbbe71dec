import math

import pytest

from trueloop import formatting


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.993, "0.9930"), (1.0, "1.000"), (0, "0"), (12.345, "12.35"), (281.33, "281.3"),
        (999.96, "1000"), (1234.5, "1,234"), (53940, "53,940"), (-0.5, "−0.5000"),
        (3e-6, "3.00e−06"),
        (2.5e9, "2.50e+09"), (math.nan, "NaN"), (math.inf, "∞"), (-math.inf, "−∞"), (None, "–"),
    ],
)  # fmt: skip
def test_numbers(value: float | None, text: str) -> None:
    assert formatting.number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.43, "0.43 s"), (12.34, "12.3 s"), (59.96, "1 min 00 s"), (134, "2 min 14 s"),
        (3599.7, "1 h 00 min"), (11100, "3 h 05 min"), (None, "–"), (math.nan, "–"),
    ],
)  # fmt: skip
def test_durations(seconds: float | None, text: str) -> None:
    assert formatting.duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0%"), (1, "100%"), (0.305, "30%"), (0.0123, "1.2%"), (0.02, "2%"), (1e-5, "under 0.1%")],
)
def test_percentages(share: float, text: str) -> None:
    assert formatting.percent(share) == text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("val_accuracy", "validation accuracy"), ("train_loss", "training loss"),
        ("test_r2", "test R²"), ("val_f1", "validation F1"), ("val_top5", "validation top-5"),
        ("loss", "loss"), ("value_error", "value error"), ("val_", "val "),
    ],
)  # fmt: skip
def test_names_of_scores(name: str, words: str) -> None:
    assert formatting.score_name(name) == words


def test_clocks_and_capitals() -> None:
    assert [formatting.clock(s) for s in (-1, 5, 72, 7509)] == ["0:00", "0:05", "1:12", "2:05:09"]
    assert formatting.capital("val R²") == "Val R²"
    assert formatting.capital("") == ""
