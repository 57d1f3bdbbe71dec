"""Prediction intervals of the table task, from the training to the exported program."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
import torch

from trueloop.cli import main
from trueloop.cli._session import load_trained, read_data
from trueloop.cli._training import last_words
from trueloop.evaluation import predict
from trueloop.feed import Feed
from trueloop.formatting import percent
from trueloop.run import Run, write_report
from trueloop.run.interval_page import intervals
from trueloop.tasks.standalone.table_rows import TablePredictor
from trueloop.tasks.table import Table, network
from trueloop.tasks.table.intervals import ScaledQuantileLoss, column_names
from trueloop.tasks.table.network import TableNet, TargetScale

Command = Callable[..., Any]
QUANTILES = [0.05, 0.4, 0.95]
NAMES = ["price_q05", "price_q40", "price_q95"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose noise grows with x, and a run on it."""
    folder = tmp_path_factory.mktemp("quantiles")
    draws = np.random.default_rng(0)
    x = draws.uniform(1, 5, 240)
    price = 1000 + 100 * x + 30 * x * draws.normal(size=240)
    rows = [f"{a},{b}" for a, b in zip(x, price, strict=True)]
    (folder / "data.csv").write_text("\n".join(["x,price", *rows]))
    words = "--target price --epochs 4 --width 8 --layers 1 --lr 0.02 --quiet --no-doctor"
    data = ["--data", str(folder / "data.csv"), "--quantiles", "0.05,0.4,0.95"]
    assert main(["train", "table", *data, *words.split(), "--run", str(folder / "run")]) == 0
    return folder


def test_scores_are_those_of_the_validation_rows(folder: Path) -> None:
    run = Run(folder / "run")
    trained = load_trained(run, "cpu", quiet=True)
    _, splits = read_data(trained.settings)
    for data, scores, prefix in (
        (splits.val, run.results["scores"], "val_"),
        (splits.test, run.results["test_scores"], ""),
    ):
        outputs = predict(trained.model.eval(), Feed(data[0], 64)).double().numpy()
        targets = data[1].double().numpy()
        assert outputs.shape == (len(targets), 3)
        assert (np.diff(outputs, axis=1) >= 0).all()
        assert outputs.mean() > 500  # in the target's own unit
        inside = [low <= y <= high for (low, _, high), y in zip(outputs, targets, strict=True)]
        found = {name.removeprefix(prefix): value for name, value in scores.items()}
        assert found["coverage"] == pytest.approx(np.mean(inside), abs=1e-9)
        assert found["width"] == pytest.approx((outputs[:, 2] - outputs[:, 0]).mean(), rel=1e-5)
        assert found["mae"] == pytest.approx(np.abs(outputs[:, 1] - targets).mean(), rel=1e-5)
    shown = run.results["residuals"]["prediction"]
    assert len(shown) == len(splits.val[1])


def test_intervals_are_in_the_last_words_and_the_report(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(folder / "run")
    found, scores = run.results["intervals"], run.results["scores"]
    trained = load_trained(run, "cpu", quiet=True)
    _, splits = read_data(trained.settings)
    inputs, targets = splits.val
    outputs = predict(trained.model.eval(), Feed(inputs, 64)).double().numpy()
    order = np.argsort(outputs[:, 1], kind="stable")
    assert found["share"] == pytest.approx(0.9)
    assert found["samples"] == len(targets)
    for name, column in zip(("low", "prediction", "high"), outputs[order].T, strict=True):
        assert found[name] == pytest.approx(column.tolist())
    assert found["target"] == targets.double().numpy()[order].tolist()
    lines = last_words(run, run.results, run.path / "report.html", trained.settings)
    val, test = scores["val_coverage"], run.results["test_scores"]["coverage"]
    assert (
        f"the 90% interval has {percent(val)} of the validation targets, {percent(test)} of the"
        " test targets" in lines
    )
    page = write_report(run).read_text()
    assert "Prediction intervals" in page
    figure = intervals(run.results).charts[0].figure["data"]
    inside, outside = (len(part["y"]) for part in figure[1:])
    assert (inside, inside + outside) == (round(val * len(targets)), len(targets))
    assert not intervals({}).charts


def test_predictions_have_a_column_for_each_quantile(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["--data", folder / "data.csv", "--out", "p.csv"]
    assert command("predict", folder / "run", *given).status == 0
    written = polars.read_csv("p.csv")
    assert written.columns == ["row", "prediction", *NAMES, "error"]
    assert (written["prediction"] == written["price_q40"]).all()
    assert (written["price_q05"] <= written["price_q95"]).all()
    rows = [{"x": "1.5"}, {"x": "4.5"}, {"x": ""}]
    ours = Run(folder / "run").predict([{"x": 1.5}, {"x": 4.5}, {"x": None}], device="cpu")

    # The exported program, which imports its network from the file beside it.
    assert command("export", folder / "run", "--out", "app", "--format", "python").status == 0
    assert json.loads(Path("app/task.json").read_text())["quantiles"] == dict(
        zip(NAMES, QUANTILES, strict=True)
    )
    monkeypatch.setitem(sys.modules, "network", network)
    found = TablePredictor(Path("app")).predict(rows)
    assert list(found[0]) == ["prediction", *NAMES]
    for one, two in zip(ours.to_dicts(), found, strict=True):
        for name, value in two.items():
            assert one[name] == pytest.approx(value, rel=1e-6)


def test_quantiles_cross_in_training_only() -> None:
    net = TableNet(1, [], 3, width=4, layers=1, mean=10.0, deviation=2.0)
    torch.nn.init.normal_(net.layers[-1].bias, generator=torch.Generator().manual_seed(1))
    inputs = torch.zeros(5, 1), torch.zeros(5, 0, dtype=torch.int64)
    free, sorted_ = net.train()(*inputs), net.eval()(*inputs)
    assert (free.diff(dim=1) < 0).any()
    assert torch.equal(sorted_, free.sort(dim=1).values)


@pytest.mark.parametrize("log", [False, True])
def test_the_loss_is_that_of_the_standardised_target(log: bool) -> None:
    draws = torch.Generator().manual_seed(0)
    inner, targets = torch.randn(50, 3, generator=draws), torch.randn(50, generator=draws)
    head = TargetScale(3.0, 0.5, log)
    criterion = ScaledQuantileLoss(QUANTILES, 0.5, log)
    error = (targets[:, None] - inner).double().numpy()
    q = np.array(QUANTILES)
    expected = np.maximum(q * error, (q - 1) * error).mean()
    assert float(criterion(head(inner), head(targets))) == pytest.approx(expected, rel=1e-4)


def test_names_of_columns() -> None:
    assert column_names("y", [0.005, 0.07, 0.1, 0.975]) == ["y_q00.5", "y_q07", "y_q10", "y_q97.5"]


def test_a_run_without_quantiles_is_as_before(folder: Path) -> None:
    task = Table(Table.Options(target="price"), data=folder / "data.csv")
    task.splits()
    assert task.model()(torch.zeros(2, 1), torch.zeros(2, 0, dtype=torch.int64)).shape == (2,)
    assert task.state()["quantiles"] == {}
    assert list(task.predictions(torch.zeros(2))) == ["prediction"]
