import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from trueloop.run import charts
from trueloop.run.charts import Curves, smooth, thin
from trueloop.run.log_reader import LogReader

floats = st.floats(-1e6, 1e6) | st.just(math.nan)


def updates(norms: list[float], *, skipped: set[int] = frozenset()) -> list[dict[str, Any]]:  # type: ignore[assignment]
    return [
        {"kind": "update", "epoch": k // 10 + 1, "batch": k % 10, "update": k + 1, "loss": 1.0,
         "grad_norm": norm, "lr": 0.1, "samples": 8, "skipped": k in skipped, "time": 0.1 * k}
        for k, norm in enumerate(norms)
    ]  # fmt: skip


def evals(**scores: list[float]) -> list[dict[str, Any]]:
    count = len(next(iter(scores.values())))
    return [
        {"kind": "eval", "epoch": k + 1, "update": k, "time": float(k), "seconds": 0.0,
         **{name: values[k] for name, values in scores.items()}}
        for k in range(count)
    ]  # fmt: skip


@settings(deadline=None)
@given(arrays(np.float64, st.integers(1, 400), elements=floats), st.integers(4, 60))
def test_thinning_keeps_extremes_ends_and_order(y: np.ndarray, limit: int) -> None:
    x = np.arange(len(y), dtype=np.float64)
    kept_x, kept_y = thin(x, y, limit)
    assert len(kept_x) <= limit
    assert np.array_equal(kept_y, y[kept_x.astype(int)], equal_nan=True)
    assert (np.diff(kept_x) > 0).all()
    assert (kept_x[0], kept_x[-1]) == (0, len(y) - 1)
    if np.isfinite(y).any():
        assert np.nanmin(kept_y) == np.nanmin(y)
        assert np.nanmax(kept_y) == np.nanmax(y)


@settings(deadline=None)
@given(arrays(np.float64, st.integers(61, 400), elements=floats), st.integers(4, 60))
def test_thinning_keeps_the_extremes_of_each_bucket(y: np.ndarray, limit: int) -> None:
    kept = set(thin(np.arange(len(y), dtype=np.float64), y, limit)[0].astype(int))
    edges = np.linspace(0, len(y), limit // 2, dtype=np.int64)
    for start, stop in itertools.pairwise(edges):
        bucket = y[start:stop]
        if np.isfinite(bucket).any():
            own = y[sorted(kept & set(range(start, stop)))]
            assert np.nanmin(own) == np.nanmin(bucket)
            assert np.nanmax(own) == np.nanmax(bucket)


def test_thinning_keeps_a_spike_of_one_update_in_a_million() -> None:
    y = np.sin(np.arange(1_000_000) / 1e5)
    y[777_777] = 50.0
    x, thinned = thin(np.arange(len(y), dtype=np.float64), y)
    assert len(x) <= charts.POINTS
    assert thinned[x == 777_777] == [50.0]


@settings(deadline=None)
@given(arrays(np.float64, st.integers(1, 60), elements=floats), st.integers(1, 12))
def test_smoothing_is_the_mean_of_the_window(y: np.ndarray, width: int) -> None:
    for k, value in enumerate(smooth(y, width)):
        window = y[max(0, k - width // 2) : k + (width + 1) // 2]
        window = window[np.isfinite(window)]
        if len(window):
            assert value == pytest.approx(window.mean(), rel=1e-6, abs=1e-6)
        else:
            assert math.isnan(value)


def strict(figure: charts.Figure) -> None:
    """The figure is JSON without NaN."""
    json.dumps(figure, allow_nan=False)


def test_losses_that_span_decades_get_a_log_axis() -> None:
    wide = charts.loss(
        Curves(LogReader.of(evals(train_loss=[3.0, 0.1, 0.01], val_loss=[3.0, 0.2, 0.1])))
    )
    narrow = charts.loss(Curves(LogReader.of(evals(train_loss=[3.0, 2.0, 1.0]))))
    negative = charts.loss(Curves(LogReader.of(evals(train_loss=[3.0, 0.1, -1.0]))))
    assert wide is not None
    assert wide["layout"]["yaxis"]["type"] == "log"
    assert wide["layout"]["yaxis"]["ticktext"] == ["0.01", "0.1", "1", "10"]
    for chart in (narrow, negative):
        assert chart is not None
        assert "type" not in chart["layout"]["yaxis"]


def test_updates_stand_between_the_epochs() -> None:
    chart = charts.loss(Curves(LogReader.of(updates([1.0] * 20))))
    assert chart is not None
    x = chart["data"][0]["x"]
    assert (x[0], x[9], x[19]) == (0.1, 1.0, 2.0)


def test_metrics_are_grouped_by_the_way_they_should_go() -> None:
    lines = evals(
        train_loss=[1.0], val_loss=[1.0], val_accuracy=[0.5], val_f1=[0.4], train_accuracy=[0.6],
        val_mae=[3.0], val_temperature=[0.1],
    )  # fmt: skip
    found = {
        title: (chart, rises) for title, chart, rises in charts.scores(Curves(LogReader.of(lines)))
    }
    assert set(found) == {"Scores", "MAE", "temperature"}
    scores, rises = found["Scores"]
    assert rises
    assert not found["MAE"][1]
    lines_by_name = {trace["name"]: trace["line"] for trace in scores["data"]}
    assert set(lines_by_name) == {"accuracy", "F1", "accuracy (training)"}
    assert lines_by_name["accuracy (training)"]["dash"] == "dash"
    assert lines_by_name["accuracy"]["color"] == lines_by_name["accuracy (training)"]["color"]
    assert scores["data"][0]["mode"] == "markers", "one point has no line"


def test_a_bottomless_r2_is_cut_off() -> None:
    ((_, chart, _),) = charts.scores(Curves(LogReader.of(evals(val_r2=[-40.0, 0.5, 0.9]))))
    assert chart["layout"]["yaxis"]["range"] == [-0.2, 1.03]


def test_gradient_norm_shows_clipping_and_skipped_updates() -> None:
    norms = [0.5, 2.0, 3.0, 0.0, math.inf, 0.7]
    curves = Curves(LogReader.of(updates(norms, skipped={4})))
    assert charts.clipped_share(curves, 1.0) == 2 / 5
    assert charts.clipped_share(curves, None) is None
    chart = charts.gradient_norm(curves, 1.0)
    assert chart is not None
    strict(chart)
    named = {trace["name"]: trace for trace in chart["data"]}
    assert set(named) == {"each update", "smoothed", "clip at 1", "skipped"}
    assert named["each update"]["y"] == [0.5, 2.0, 3.0, None, 0.7]
    assert named["skipped"]["x"] == [pytest.approx(5 / 6, rel=1e-5)]
    assert named["clip at 1"]["y"] == [1.0, 1.0]
    assert chart["layout"]["yaxis"]["type"] == "log"
    assert len(charts.gradient_norm(curves, None)["data"]) == 3  # type: ignore[index]


def test_missing_parts_make_no_chart() -> None:
    empty = Curves(LogReader.of([]))
    assert charts.loss(empty) is None
    assert charts.scores(empty) == []
    assert charts.learning_rate(empty) is None
    assert charts.gradient_norm(empty, 1.0) is None
    none = [{**line, "grad_norm": None} for line in updates([1.0])]
    assert charts.gradient_norm(Curves(LogReader.of(none)), 1.0) is None
    assert charts.overlay([("a", empty)], ["val_loss"]) is None


def test_nan_is_a_gap_and_json_stays_strict() -> None:
    lines = updates([math.nan] * 3 + [1.0]) + evals(
        train_loss=[math.nan, 1.0], val_loss=[math.inf, 2.0], val_accuracy=[math.nan, math.nan]
    )
    for line in lines[:2]:
        line["loss"] = math.nan
    curves = Curves(LogReader.of(lines))
    found = [charts.loss(curves), charts.learning_rate(curves), charts.gradient_norm(curves, 1.0)]
    found += [chart for _, chart, _ in charts.scores(curves)]
    for chart in found:
        assert chart is not None
        strict(chart)


def test_long_runs_make_small_charts() -> None:
    draws = np.random.default_rng(0)
    curves = Curves(LogReader.of(updates(draws.lognormal(size=30_000).tolist())))
    for chart in (charts.loss(curves), charts.gradient_norm(curves, 1.0)):
        assert chart is not None
        assert max(len(trace["x"]) for trace in chart["data"]) <= charts.POINTS


def test_residual_histogram_counts_every_sample() -> None:
    residual = np.random.default_rng(0).standard_t(2, 5000)
    chart, beyond = charts.residual_histogram(residual)
    assert sum(chart["data"][0]["y"]) + beyond == 5000
    assert 0 < beyond < 50
    same, beyond = charts.residual_histogram(np.zeros(10))
    assert (sum(same["data"][0]["y"]), beyond) == (10, 0)


def test_names_are_text_to_plotly() -> None:
    chart = charts.confusion([[1, 2], [3, 4]], ["<b>", "a&b"])
    assert chart["data"][0]["x"] == ["&lt;b&gt;", "a&amp;b"]
    assert chart["data"][0]["z"] == [[0.333333, 0.666667], [0.428571, 0.571429]]


def test_a_spike_of_the_loss_is_in_the_chart_and_does_not_flatten_it() -> None:
    """The y-axis begins with what most updates span; all of them are in the data."""
    lines = updates([1.0] * 2000)
    for k, line in enumerate(lines):
        line["loss"] = 1.0 + 0.001 * (k % 7)
    lines[1234]["loss"] = 500.0
    chart = charts.loss(Curves(LogReader.of(lines)))
    assert chart is not None
    assert 500.0 in chart["data"][0]["y"]
    low, high = chart["layout"]["yaxis"]["range"]
    assert (low, high) == (pytest.approx(1, abs=0.01), pytest.approx(1, abs=0.01))
    lines[1234]["loss"] = 1.0
    calm = charts.loss(Curves(LogReader.of(lines)))
    assert calm is not None
    assert "range" not in calm["layout"]["yaxis"]


def test_losses_over_a_wide_span_have_a_log_axis_and_the_other_one_in_reserve() -> None:
    def drawn(values: list[float]) -> charts.Figure:
        lines = [{**line, "loss": loss} for line, loss in zip(updates(values), values, strict=True)]
        chart = charts.loss(Curves(LogReader.of(lines)))
        assert chart is not None
        return chart

    wide = drawn(np.geomspace(1, 0.05, 60).tolist())
    assert wide["layout"]["yaxis"]["type"] == "log"
    assert wide["layout"]["yaxis"]["title"]["text"] == "logarithmic"
    assert "type" not in wide["other_axis"]
    narrow = drawn(np.geomspace(1, 0.5, 60).tolist())
    assert "type" not in narrow["layout"]["yaxis"]
    assert narrow["other_axis"]["type"] == "log"
    below = drawn(np.linspace(1, -0.5, 60).tolist())
    assert "other_axis" not in below, "a loss below zero has no place on a log axis"
