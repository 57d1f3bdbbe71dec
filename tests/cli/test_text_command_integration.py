"""`trueloop train text` and what follows it, as commands: one run, asked everything."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from trueloop.run import Run

SHAPE = ("--layers", "2", "--width", "16", "--heads", "2", "--context", "16", "--batch-size", "8")
TEXT = "to be or not to be, that is the question\n" * 60


def test_a_language_model_from_text_to_scores(tmp_path: Path, command: Any) -> None:
    text, run = tmp_path / "text.txt", tmp_path / "run"
    text.write_text(TEXT, encoding="utf-8")
    words = ("train", "text", "--data", text, *SHAPE, "--updates", "30", "--sample-tokens", "20")
    assert command(*words, "--batch-tokens", "256", "--run", run, "--quiet").status == 0
    trained = Run(run)
    assert (trained.config["batch_size"], trained.config["accumulate"]) == (8, 2)
    written = sorted((run / "texts" / "written").iterdir())
    assert [path.stem for path in written] == [f"{k:09d}" for k in range(3, 31, 3)]
    assert "After update 30" in (run / "report.html").read_text("utf-8")
    evals = [line for line in trained.metrics() if line["kind"] == "eval"]
    assert evals[-1]["val_loss"] < evals[0]["val_loss"]
    for line in evals:
        assert line["val_perplexity"] == pytest.approx(math.exp(line["val_loss"]), rel=1e-5)
        assert line["val_bits_per_byte"] == pytest.approx(line["val_loss"] / math.log(2), rel=1e-5)

    scores = json.loads(command("evaluate", run, "--json").out)["scores"]["val"]
    assert scores["loss"] == pytest.approx(trained.results["scores"]["val_loss"], rel=1e-6)
    whole = json.loads(command("evaluate", run, "--data", text, "--json").out)["scores"]["data"]
    assert math.isfinite(whole["bits_per_byte"])

    out = tmp_path / "scores.json"
    assert command("predict", run, "--data", text, "--out", out).status == 0
    (row,) = json.loads(out.read_text())
    assert row["tokens"] == len(TEXT) - 1
    assert row["loss"] == pytest.approx(whole["loss"], rel=1e-6)
    found = trained.predict(["to be or not", "bbbb nnnn", "to Ω"])
    assert found["tokens"].to_list() == [11, 8, None]
    assert "'Ω'" in found["error"][2]

    model = trained.model(device="cpu")
    assert model(torch.zeros(1, 16, dtype=torch.int64)).shape[:2] == (1, 16)
    proof = command("verify-resume", "text", "--data", text, *SHAPE, "--updates", "8")
    assert proof.status == 0, proof.err


def test_mistakes_are_one_line(tmp_path: Path, command: Any) -> None:
    text = tmp_path / "text.txt"
    text.write_text(TEXT, encoding="utf-8")
    train = ("train", "text", "--data", text, "--run", tmp_path / "run")
    for words, message in (
        (("--preset", "huge"), "no preset is called 'huge'"),
        (("--heads", "3"), "cannot be divided by --heads 3"),
        (("--batch-tokens", "1000"), "write --batch-tokens 768 or 1024"),
        (("--context", "100000"), "needs 100,001"),
        (("--width", "16384", "--layers", "16"), "GiB of memory"),
    ):
        outcome = command(*train, *words)
        assert outcome.status == 2
        assert message in outcome.err
        assert outcome.err.count("\n") == 1
        assert not (tmp_path / "run").exists()
