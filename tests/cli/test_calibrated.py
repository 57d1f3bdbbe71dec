"""Calibration and thresholds: kept with the run, shown in its report, applied when asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
import torch

from trueloop.calibration import fit_temperature
from trueloop.cli._session import load_trained, read_data
from trueloop.errors import ConfigError
from trueloop.evaluation import predict
from trueloop.feed import Feed
from trueloop.run import Run

Command = Callable[..., Any]


@pytest.fixture
def binary(command: Command) -> Path:
    """A run with two classes that its inputs tell apart most of the time."""
    draws = np.random.default_rng(0)
    x = draws.normal(size=200)
    y = x + draws.normal(size=200) > 0.3
    rows = [f"{a},{'yes' if b else 'no'}" for a, b in zip(x, y, strict=True)]
    Path("data.csv").write_text("\n".join(["x,y", *rows]))
    words = "--target y --epochs 3 --width 8 --layers 1 --lr 0.05 --quiet --no-doctor --run run"
    assert command("train", "table", "--data", "data.csv", *words.split()).status == 0
    return Path("run")


def test_they_are_kept_shown_and_applied(command: Command, binary: Path) -> None:
    run = Run(binary)
    found = run.results["calibration"]
    assert "Reliability diagram" in (binary / "report.html").read_text()

    # The temperature is that of the validation samples under the best weights.
    trained = load_trained(run, "cpu", quiet=True)
    _, splits = read_data(trained.settings)
    logits = predict(trained.model.eval(), Feed(splits.val[0], 64))
    assert found["temperature"] == pytest.approx(fit_temperature(logits, splits.val[1]), rel=1e-4)

    def column(name: str, **options: Any) -> np.ndarray:
        return run.predict("data.csv", device="cpu", **options)[name].to_numpy()

    p = column("probability").astype(np.float64)
    calm = 1 / (1 + np.exp(-np.log(p / (1 - p)) / found["temperature"]))
    assert column("probability", calibrated=True) == pytest.approx(calm, abs=1e-5)
    assert (column("prediction", threshold=0.2) == np.where(p > 0.2, "yes", "no")).all()
    best = found["thresholds"]["f1"]["threshold"]
    chosen = column("prediction", threshold="f1")
    assert (chosen == np.where(p > best, "yes", "no")).all()
    assert (column("prediction", threshold="f1", calibrated=True) == chosen).all()

    given = ["predict", binary, "--data", "data.csv", "--out", "p.csv"]
    assert command(*given, "--calibrated", "--threshold", "f1").status == 0
    written = polars.read_csv("p.csv")
    assert written["prediction"].to_list() == chosen.tolist()
    assert written["probability"].to_numpy() == pytest.approx(calm, abs=1e-5)
    for wrong, says in (("f2", "did you mean 'f1'"), ("1.5", "is not a probability")):
        said = command(*given[:-1], "q.csv", "--threshold", wrong)
        assert said.status == 2
        assert says in said.complaint
    assert not Path("q.csv").exists()


def test_others_have_none(spiral_run: Path, line_run: Path) -> None:
    assert "thresholds" not in Run(spiral_run).results["calibration"]
    points = torch.zeros(2, 2)
    with pytest.raises(ConfigError, match="--threshold f1 is for two classes"):
        Run(spiral_run).predict(points, threshold="f1")
    logits = Run(spiral_run).model(device="cpu")(points).double()
    shares = (logits / Run(spiral_run).results["calibration"]["temperature"]).softmax(1)
    found = Run(spiral_run).predict(points, calibrated=True, device="cpu")
    assert found["p_red"].to_numpy() == pytest.approx(shares[:, 2].numpy(), abs=1e-5)
    with pytest.raises(ConfigError, match="--calibrated needs a classifier"):
        Run(line_run).predict(torch.zeros(2, 1), calibrated=True)
