"""Reports of short runs, as a reader meets them, to be opened by `make reports-check`.

    .venv/bin/python docs/_site/reports.py FOLDER

Writes a page of every kind: a classifier with several classes, a regression with intervals, images,
a language model, a cross-validation, a run that is going on, a report in one file, a comparison of
runs on the same data and one of runs on different data, and a search.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from trueloop.cli import main
from trueloop.run import Run, write_report
from trueloop.run.html_page import Rewritten

SHORT = ["--quiet", "--threads", "1", "--no-doctor"]


def houses(path: Path) -> None:
    """A table whose last column is a price, with noise that grows with it."""
    draws = np.random.default_rng(0)
    size, rooms = draws.normal(100, 25, 1200).clip(30), draws.integers(1, 7, 1200)
    towns = np.array(["Ardea", "Brill", "Corby"])[draws.integers(0, 3, 1200)]
    price = 2000 * size + 9000 * rooms + 30000 * (towns == "Brill")
    price *= draws.lognormal(0, 0.1, 1200)
    rows = [
        f"{s:.1f},{r},{t},{p:.0f}" for s, r, t, p in zip(size, rooms, towns, price, strict=True)
    ]
    path.write_text("\n".join(["size,rooms,town,price", *rows]) + "\n")


def photos(folder: Path) -> None:
    """Small pictures of three classes: which corner of the picture is bright."""
    draws = np.random.default_rng(0)
    for k, name in enumerate(("left", "right", "below")):
        (folder / name).mkdir(parents=True)
        for number in range(40):
            pixels = draws.integers(0, 90, (32, 32, 3), dtype=np.uint8)
            y, x = ((4, 4), (4, 18), (18, 11))[k]
            pixels[y : y + 10, x : x + 10] += 120
            Image.fromarray(pixels).save(folder / name / f"{number}.png")


def call(*words: object) -> None:
    """A command of trueloop, which must end well."""
    status = main([str(word) for word in words])
    if status != 0:
        sys.exit(f"trueloop {' '.join(map(str, words))} ended with status {status}")


def train(run: Path, task: str, *words: object) -> None:
    call("train", task, "--run", run, *SHORT, *words)


def make(folder: Path) -> None:
    """All runs and pages below the folder."""
    table, images, book = folder / "houses.csv", folder / "photos", folder / "book.txt"
    houses(table)
    photos(images)
    text = (Path(__file__).parents[1] / "loop.md").read_text(encoding="utf-8")
    book.write_text(text * 3, encoding="utf-8")
    of_table = ("--data", table, "--target", "price")

    train(folder / "digits", "digits", "--epochs", 6, "--clip-norm", 1, "--profile", 3)
    for name, lr in (("lr-3e-3", 3e-3), ("lr-1e-3", 1e-3), ("lr-1e-4", 1e-4)):
        train(folder / name, "spiral", "--epochs", 12, "--lr", lr)
    train(folder / "houses", "table", *of_table, "--epochs", 12, "--quantiles", "0.05,0.5,0.95")
    train(
        folder / "images", "images", "--data", images, "--epochs", 4, "--mixup", 0.2, "--no-cache"
    )
    words = ("--layers", 1, "--width", 32, "--heads", 2, "--context", 32, "--batch-tokens", 512)
    train(
        folder / "text",
        "text",
        "--data",
        book,
        *words,
        "--updates",
        60,
        "--eval-every",
        "20 updates",
    )
    train(folder / "folds", "table", *of_table, "--epochs", 6, "--folds", 3)

    going_on = Run(folder / "lr-1e-4")
    write_report(going_on, one_file=folder / "live.html", rewritten=Rewritten("5 minutes", 300))
    call("report", folder / "houses", "--one-file", "--out", folder / "one-file.html")
    alike = [folder / name for name in ("lr-3e-3", "lr-1e-3", "lr-1e-4")]
    call("report", *alike, "--out", folder / "compare-same-data.html")
    others = [folder / name for name in ("digits", "images", "houses", "text")]
    call("report", *others, *alike, "--out", folder / "compare-different-data.html")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("name the folder: python docs/_site/reports.py FOLDER")
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        sys.exit(f"{target} is not empty: name a new folder")
    make(target)
