"""Every task on two ranks, and the proof of a resume."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from test_train_on_ranks import assert_same_results, fine, log_of, on, weights_of

SPIRAL = ("train", "spiral", "--epochs", "2", "--batch-size", "200")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, a folder of images and a text."""
    folder = tmp_path_factory.mktemp("data")
    draws = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{'yx'[int(a > b)]},{a + 2 * b:.3f}" for a, b in draws.random((80, 2))]
    (folder / "table.csv").write_text("a,b,c,price\n" + "\n".join(rows) + "\n")
    words = draws.choice(["to", "be", "or", "not"], 700)
    (folder / "text.txt").write_text("\n".join(words), encoding="utf-8")
    for label, name in enumerate(("dark", "light")):
        (folder / "photos" / name).mkdir(parents=True)
        for k in range(14):
            pixels = draws.integers(100 * label, 100 * label + 120, (10, 10, 3))
            image = Image.fromarray(pixels.astype(np.uint8))
            image.save(folder / "photos" / name / f"{k}.png")
    return folder


TASKS = {
    "spiral": (*SPIRAL,),
    "digits": ("train", "digits", "--epochs", "1", "--batch-size", "300"),
    "table": (
        "train",
        "table",
        "--data",
        "table.csv",
        "--target",
        "price",
        "--epochs",
        "2",
        "--dropout",
        "0",
        "--batch-size",
        "8",
    ),
    "images": (
        "train",
        "images",
        "--data",
        "photos",
        "--epochs",
        "2",
        "--width",
        "4",
        "--batch-size",
        "4",
    ),
    "text": (
        *("train", "text", "--data", "text.txt", "--layers", "2", "--width", "16", "--heads", "2"),
        *("--context", "16", "--epochs", "2", "--batch-size", "20", "--sample-tokens", "8"),
    ),
}
EXACT = {"spiral", "table"}
"""Those without batch norm and dropout: what comes out is what one process gives."""


@pytest.mark.parametrize("name", TASKS)
def test_every_task_trains_on_ranks_and_goes_on_after_a_stop(
    folder: Path, tmp_path: Path, name: str
) -> None:
    os.chdir(folder)
    one, whole, stopped = (str(tmp_path / run) for run in ("one", "whole", "stopped"))
    words = (*TASKS[name], "--quiet")
    if name in EXACT:
        fine(on(1, folder, (*words, "--run", one))[0])
    trained, cut, resumed = on(
        2,
        folder,
        (*words, "--run", whole),
        (*words, "--run", stopped, "--max-minutes", "1e-9"),
        ("resume", stopped, "--max-minutes", "60", "--quiet"),
    )
    for outcomes in (trained, cut, resumed):
        fine(outcomes)
    assert log_of(Path(stopped)) == log_of(Path(whole))
    first, second = weights_of(Path(stopped)), weights_of(Path(whole))
    assert all(torch.equal(first[key], second[key]) for key in second)
    if name in EXACT:
        assert_same_results(Path(one), Path(whole), rel=1e-4, atol=1e-4)


def test_ranks_prove_that_a_run_resumes_exactly(tmp_path: Path, line: str) -> None:
    words = ("verify-resume", line, "--updates", "8", "--accumulate", "2", "--epochs", "6")
    (outcomes,) = on(2, tmp_path, words)
    assert "it is bitwise the run that" in fine(outcomes)
