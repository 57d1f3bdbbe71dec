"""Images, rows and names that cannot be read or printed: left out, marked, never a traceback."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from trueloop.cli import main
from trueloop.names import from_printable
from trueloop.run import Run

Command = Callable[..., Any]
SMALL = ("--epochs", "1", "--width", "2", "--size", "8", "--quiet")
# Not UTF-8, a digit that is not a number, control and bidirectional characters, spaces at the ends.
CLASSES = [
    b"caf\xe9",
    "²".encode(),
    b"two\nlines\x1b[31m",
    "\u202egnp".encode(),
    b" cat ",
    b"a,\"b'",
]


def draw(path: Path, level: int) -> None:
    noise = np.random.default_rng(level).integers(0, 40, (8, 8))
    Image.fromarray((level + noise).astype(np.uint8)).save(path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes of twelve images, one of each broken."""
    for k, name in enumerate(("dark", "bright")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for n in range(12):
            draw(tmp_path / "photos" / name / f"{n}.png", 30 + 150 * k + n)
    for name in ("dark/3.png", "bright/5.png"):
        (tmp_path / "photos" / name).write_bytes(b"not an image")
    return tmp_path / "photos"


def test_skipped_images_are_named_on_the_console_in_the_data_and_in_the_report(
    command: Command, photos: Path
) -> None:
    done = command("train", "images", "--data", photos, "--broken", "skip", "--run", "run", *SMALL)
    assert done.status == 0
    (line,) = [line for line in done.err.splitlines() if "skipped" in line]
    assert line.startswith("trueloop: skipped 2 samples that cannot be read: ")
    assert f"{photos / 'dark' / '3.png'} (not an image in a format that Pillow knows)" in line
    kept = json.loads(Path("run/data.json").read_text("utf-8"))
    assert sorted(kept["skipped"]) == [str(photos / n) for n in ("bright/5.png", "dark/3.png")]
    assert "bright/5.png" in Path("run/report.html").read_text("utf-8")
    again = command("evaluate", "run", "--json")
    assert again.status == 0
    assert "skipped 2 samples" in again.complaint
    assert len(json.loads(again.out)["skipped"]) == 2


def test_broken_images_are_rows_with_an_error_in_what_is_predicted(
    command: Command, photos: Path
) -> None:
    skipped = command("train", "images", "--data", photos, "--broken=skip", "--run=run", *SMALL)
    assert skipped.status == 0
    for name, read in (
        ("o.csv", pl.read_csv), ("o.parquet", pl.read_parquet), ("o.json", pl.read_json)
    ):  # fmt: skip
        done = command("predict", "run", "--data", photos, "--out", name)
        assert done.status == 1
        assert done.out == f"22 predictions in {Path(name).absolute()}\n"
        same, skips = done.err.splitlines()
        assert "the data that the run was trained on" in same
        assert "skipped 2 samples that cannot be read: bright/5.png (" in skips
        assert "their rows have an empty prediction" in skips
        frame = read(name)
        assert frame.height == 24
        marked = frame.filter(pl.col("error").is_not_null())
        assert marked["file"].to_list() == ["bright/5.png", "dark/3.png"]
        assert marked["prediction"].null_count() == marked["probability"].null_count() == 2
        assert frame["prediction"].null_count() == 2
    scored = command("evaluate", "run", "--data", photos, "--json")
    assert scored.status == 1
    assert "the scores are of the others" in scored.err.splitlines()[-1]
    assert len(json.loads(scored.out)["skipped"]) == 2


def test_data_that_changed_are_not_divided_as_they_were(command: Command, photos: Path) -> None:
    words = ("train", "images", "--data", photos, "--broken=skip", "--run=run", *SMALL)
    assert command(*words).status == 0
    (photos / "dark" / "3.png").unlink()
    draw(photos / "dark" / "12.png", 70)
    said = command("evaluate", "run")
    assert said.status == 2
    assert f"{photos} has changed since the run began" in said.complaint
    assert command("evaluate", "run", "--data", photos).status == 1


def test_names_that_cannot_be_printed_go_all_the_way(command: Command, tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/dat\xe4\n"))
    for k, name in enumerate(CLASSES):
        folder = root / os.fsdecode(name)
        folder.mkdir(parents=True)
        for n in range(10):
            draw(folder / os.fsdecode(b"%d\xff\x1b.png" % n), 40 * k)
    (root / os.fsdecode(CLASSES[0]) / os.fsdecode(b"0\xff\x1b.png")).write_bytes(b"")
    words = ["train", "images", "--data", root, "--broken", "skip", "--run", "run", *SMALL[:-1]]
    done = command(*words)
    assert done.status == 0
    for text in (done.out, done.err):
        assert not set("\x1b\u202e") & set(text)
    assert command("evaluate", "run").status == 0
    assert command("report", "run").status == 0
    assert command("runs", ".").status == 0
    page = Path("run/report.html").read_text("utf-8")
    assert "\u202e" not in page
    names = json.loads(Path("run/task.json").read_text("utf-8"))["classes"]
    assert {os.fsencode(from_printable(name)) for name in names} == set(CLASSES)
    for out in ("o.csv", "o.parquet", "o.json"):
        done = command("predict", "run", "--data", root, "--out", out)
        assert done.status == 1
        assert all(line.isprintable() for line in done.err.splitlines())
    frame = pl.read_parquet("o.parquet")
    there = {os.fsencode(p.relative_to(root)) for p in root.rglob("*.png")}
    assert {os.fsencode(from_printable(name)) for name in frame["file"]} == there
    assert set(frame["prediction"].drop_nulls()) <= set(names)


def test_a_place_that_is_not_utf8_can_be_written_to(command: Command, tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/r\xfcn")
    assert main(["train", "spiral", "--epochs", "1", "--quiet", "--run", odd]) == 0
    assert command("report", odd).status == 0
    assert command("runs", tmp_path).status == 0
    assert command("evaluate", odd).status == 0
    assert command("evaluate", odd, "--json").status == 0
    assert Run(odd).results["status"] == "finished"


@pytest.fixture
def houses(command: Command) -> str:
    """A table, and a run that was trained on it."""
    lines = [
        f"{k % 9},{('red', 'blue')[k % 2]},2024-01-{1 + k % 28:02},{3 * k % 17}" for k in range(60)
    ]
    Path("houses.csv").write_text("\n".join(["size,colour,day,price", *lines]))
    words = ("--data=houses.csv", "--target=price", "--kind=regression", "--width=4")
    done = command("train", "table", *words, "--epochs=1", "--run=run", "--quiet")
    assert done.status == 0
    return "size,colour,day,price"


def test_rows_that_cannot_be_read_are_marked(command: Command, houses: str) -> None:
    rows = [
        "1,red,2024-01-01,5",
        "n/m,red,2024-01-01,5",
        "2,red,2024-13-01,5",
        "",
        "3,red,2024-01-01",
        "4,red,2024-01-01,5,6",
        "inf,red,2024-01-01,5",
        "5,blue,2024-01-02,x",
        "6,,,",
    ]
    Path("new.csv").write_text("\n".join([houses, *rows]))
    done = command("predict", "run", "--data", "new.csv", "--out", "out.csv")
    assert done.status == 1
    assert done.out.startswith("3 predictions in ")
    assert "skipped 5 samples that cannot be read: row 2 (" in done.complaint
    frame = pl.read_csv("out.csv")
    assert frame["row"].to_list() == list(range(1, 9))
    assert [k for k, cell in enumerate(frame["prediction"], 1) if cell is None] == [2, 3, 4, 5, 6]
    assert frame["error"].to_list() == [
        None,
        "column 'size' contains numbers, but row 2 contains 'n/m'",
        "column 'day' contains dates (YYYY-MM-DD), but row 3 contains '2024-13-01'",
        "line 6 has 3 cells, the header has 4",
        "line 7 has 5 cells, the header has 4",
        "row 6 of column 'size' is inf",
        None,
        None,
    ]
    scored = command("evaluate", "run", "--data", "new.csv", "--json")
    assert scored.status == 1
    skipped = json.loads(scored.out)["skipped"]
    assert list(skipped) == [f"row {k}" for k in range(2, 8)]
    assert skipped["row 7"] == "column 'price' contains numbers, but row 7 contains 'x'"


def test_a_table_without_one_good_row_is_refused(command: Command, houses: str) -> None:
    Path("new.csv").write_text(f"{houses}\nn/m,red,2024-01-01,5\n")
    for words in (("predict", "run", "--out", "out.csv"), ("evaluate", "run")):
        said = command(*words, "--data", "new.csv")
        assert said.status == 2
        assert "new.csv has no row that can be read: row 1" in said.complaint
    assert not Path("out.csv").exists()


def test_a_table_that_changed_is_not_divided_as_it_was(command: Command, houses: str) -> None:
    with Path("houses.csv").open("a") as file:
        file.write("\n1,red,2024-01-01,5\n")
    said = command("evaluate", "run")
    assert said.status == 2
    assert "houses.csv has changed since the run began" in said.complaint
    assert said.complaint.endswith("restore the data, or to score these data, write --data PATH")
