"""Quantiles in passes over the values: those of numpy, whatever the values."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from trueloop.tasks.table import column_statistics
from trueloop.tasks.table.column_encoding import CategoryColumn, NumberColumn
from trueloop.tasks.table.column_statistics import CategoryStatistics, Moments, NumberStatistics
from trueloop.tasks.table.quantiles import Quantiles

SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-5, 5).map(float),
    st.sampled_from([0.0, -0.0, 5e-324, -1.7e308]),
)


def quantiles(values: np.ndarray, pieces: int, *, single: bool = False) -> tuple[np.ndarray, int]:
    """Found in passes, and how many these were."""
    found, passes = Quantiles(SHARES, single=single), 0
    while not found.is_done:
        for piece in np.array_split(values, pieces):
            if len(piece):
                found.add(piece)
        found.end_pass()
        passes += 1
    return found.values(), passes


@settings(max_examples=40, deadline=None)
@given(values=st.lists(FLOATS, min_size=1, max_size=60), pieces=st.integers(1, 5))
def test_they_are_numpys(values: list[float], pieces: int) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.quantile(np.array(values), SHARES)
        found, _ = quantiles(np.array(values), pieces)
    assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("kind", ["normal", "uniform", "integers", "ties", "single"])
def test_many_values_take_few_passes(kind: str) -> None:
    draws = np.random.default_rng(0)
    values = {
        "normal": lambda: draws.standard_normal(50_000) * 1e-3 + 7,
        "uniform": lambda: draws.random(50_000),
        "integers": lambda: draws.integers(-(10**12), 10**12, 50_000).astype(float),
        "ties": lambda: np.where(draws.random(50_000) < 0.6, 3.0, draws.random(50_000)),
        "single": lambda: draws.standard_normal(50_000).astype(np.float32).astype(float),
    }[kind]()
    found, passes = quantiles(values, 7, single=kind == "single")
    assert np.array_equal(found, np.quantile(values, SHARES))
    assert passes <= (2 if kind == "single" else 3)


def test_statistics_of_pieces_are_those_of_the_column() -> None:
    draws = np.random.default_rng(1)
    values = draws.lognormal(3, 1, 10_000)
    values[draws.random(10_000) < 0.1] = np.nan
    train = draws.random(10_000) < 0.7
    found = NumberStatistics("x", single=False)
    for piece in np.array_split(np.arange(10_000), 9):
        found.add(values[piece], train[piece])
    found.quantiles.end_pass()
    while not found.quantiles.is_done:
        found.add_again(values, train)
        found.quantiles.end_pass()
    assert found.column() == NumberColumn.fit("x", values[train])
    assert found.gaps == np.isnan(values).sum()
    moments = Moments()
    for piece in np.array_split(values[train & ~np.isnan(values)], 9):
        moments.add(piece)
    known = values[train & ~np.isnan(values)]
    assert moments.mean == pytest.approx(known.mean(), rel=1e-13)
    assert moments.deviation == pytest.approx(known.std(), rel=1e-13)


def test_categories_are_counted_as_in_one_piece() -> None:
    draws = np.random.default_rng(2)
    texts = pl.Series([None if k == 0 else f"v{k}" for k in draws.geometric(0.02, 9_000) - 1])
    train = draws.random(9_000) < 0.7
    found = CategoryStatistics("c")
    for piece in np.array_split(np.arange(9_000), 4):
        found.add(texts.gather(piece), train[piece])
    assert found.column() == CategoryColumn.fit("c", texts.filter(pl.Series(train)))


def test_of_too_many_categories_the_rare_ones_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(column_statistics, "MOST_VALUES", 100)
    found = CategoryStatistics("c")
    for k in range(5):  # as many different values as are counted, beside one that is frequent
        names = np.arange(400) + k * 400
        names[::4] = -1
        found.add(pl.Series(names).cast(pl.String), np.ones(400, dtype=bool))
    assert found._counts is not None
    assert found._counts.height <= 100
    column = found.column()
    assert isinstance(column, CategoryColumn)
    assert column.values == ["-1"]
