"""Tables of Parquet that are read block by block give what a table in memory gives."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from trueloop import Feed
from trueloop.cli import main
from trueloop.errors import DataError
from trueloop.evaluation import evaluate, predict
from trueloop.tasks.table import Table, on_disk, row_groups
from trueloop.tasks.table.column_encoding import CellFormat
from trueloop.tasks.table.row_split import Division
from trueloop.tasks.table.stream import TableStream

ROWS = 3000


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUELOOP_CACHE", str(tmp_path / "cache"))


def frame(rows: int = ROWS, seed: int = 0) -> pl.DataFrame:
    """Columns of all kinds, with gaps; `y`, `label` and `level` are targets."""
    draws = np.random.default_rng(seed)
    x = draws.standard_normal(rows)
    when = pl.select(pl.datetime(2020, 1, 1) + pl.duration(hours=pl.int_range(rows))).to_series()
    columns = {
        "single": draws.standard_normal(rows).astype(np.float32),
        "double": [None if k % 11 == 0 else v for k, v in enumerate(x.tolist())],
        "whole": draws.integers(0, 50, rows),
        "text": [None if k % 7 == 0 else ("a", "b", "cc")[k % 3] for k in range(rows)],
        "digits": [None if k % 13 == 0 else f"{k % 17}.5" for k in range(rows)],
        "code": (draws.integers(0, 4, rows) / 2).tolist(),
        "when": when,
        "flag": [k % 5 == 0 for k in range(rows)],
        "nothing": [None] * rows,
        "constant": [1.0] * rows,
        "y": [None if k % 97 == 5 else 3 * v + 1 for k, v in enumerate(x.tolist())],
        "label": np.where(x > 0.3, "yes", "no"),
        "level": np.digitize(x, [-0.5, 0.5]).astype(float) / 2,
    }
    return pl.DataFrame(columns)


@pytest.fixture
def parquet(tmp_path: Path) -> Callable[..., Path]:
    """Writes a frame as Parquet, in blocks of `group` rows."""

    def write(data: pl.DataFrame, name: str = "table.parquet", group: int = 400) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        data.write_parquet(path, row_group_size=group, compression="zstd")
        return path

    return write


def table(path: Path, target: str = "y", seed: int = 0, **options: Any) -> Table:
    options = {"streaming": "always", "width": 16, "categorical": ["code"], **options}
    return Table(Table.Options(target=target, **options), data=path, seed=seed)


def rows_of(data: Any) -> torch.Tensor:
    """All rows of a split in its order: numbers, categories and target."""
    parts = [
        torch.cat((x.double(), c.double(), y.double()[:, None]), dim=1)
        for (x, c), y in Feed(data, 128)
    ]
    return torch.cat(parts)


def in_some_order(rows: torch.Tensor) -> list[tuple[float, ...]]:
    return sorted(map(tuple, rows.tolist()))


@pytest.mark.parametrize("target", ["y", "label", "level"])
def test_blocks_give_what_a_frame_gives(parquet: Any, target: str) -> None:
    path, val = parquet(frame()), parquet(frame(500, 1), "val.parquet")
    shared: dict[str, Any] = {"val_data": val, "test_share": 0.0}
    drop = [name for name in ("y", "label", "level") if name != target]
    small = table(path, target, streaming="auto", drop=drop, **shared)
    large = table(path, target, drop=drop, **shared)
    one, two = small.splits(), large.splits()
    assert isinstance(two.train, TableStream)
    assert small.encoder == large.encoder  # quartiles and categories to the last bit
    assert (small.kind, small.classes, small.kinds) == (large.kind, large.classes, large.kinds)
    facts = {name: two.facts[name] for name in one.facts}
    assert facts == one.facts
    if target == "y":
        assert large.target.mean == pytest.approx(small.target.mean, rel=1e-13)
        assert large.target.deviation == pytest.approx(small.target.deviation, rel=1e-13)
    assert torch.equal(rows_of(two.val), rows_of(one.val))
    assert in_some_order(rows_of(two.train)) == in_some_order(rows_of(one.train))
    codes = {finding.code for finding in one.findings} - {"TL705"}
    assert {finding.code for finding in two.findings} == codes


@pytest.mark.parametrize("target", ["y", "level"])
def test_predictions_and_scores_are_the_same(
    parquet: Any, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parquet(frame())
    task = table(path, target, streaming="never")
    task.splits()
    model = task.model().eval()
    found = []
    for most, streaming in ((10**9, "auto"), (0, "never"), (0, "always")):
        monkeypatch.setattr(on_disk, "MOST_AS_FRAME", most)
        task.options.streaming = streaming
        unseen, labelled = task.unseen(path), task.read(path)
        outputs = predict(model, Feed(unseen.inputs, 100))
        columns = pl.DataFrame(unseen.table(task.predictions(outputs)))
        scores = evaluate(model, Feed(labelled, 100), task.loss_fn(), task.metrics()).scores
        found.append((columns, scores))
        for name in ("text", "digits", "whole"):  # over several blocks, with gaps
            assert unseen.columns[name].equals(pl.read_parquet(path)[name])
        assert task.notes == (["31 of 3,000 rows have no value in the target column 'y': they are "
                               "skipped"] if target == "y" else [])  # fmt: skip
    assert found[0][0].height == ROWS
    for columns, scores in found[1:]:
        assert columns.equals(found[0][0])
        assert scores == found[0][1]


def test_the_parts_are_those_in_memory_and_the_epochs_differ(
    parquet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_disk, "MOST_AS_FRAME", 0)
    path = parquet(frame())
    stream, memory = table(path), table(path, streaming="never")
    one, two = stream.splits(), memory.splits()
    assert stream.digest == memory.digest
    assert one.facts["rows are kept"] == "on disk"
    assert two.facts["rows are kept"] == "in memory"
    for part in ("train", "val", "test"):
        streamed, kept = rows_of(getattr(one, part)), rows_of(getattr(two, part))
        assert in_some_order(streamed) == in_some_order(kept)
        assert torch.equal(streamed, kept) == (part != "train")
    feed = Feed(one.train, 64)
    epochs = [[batch[1] for batch in feed.epoch(epoch)] for epoch in (0, 1, 0)]
    first, second, again = (torch.cat(targets) for targets in epochs)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert torch.equal(first.sort().values, second.sort().values)


def test_a_window_is_all_that_is_read(parquet: Any) -> None:
    """Rows of a batch are those of one window, or of two where it goes over the end of one."""
    splits = table(parquet(frame())).splits()
    stream = splits.train
    stream._rows = 600
    read, seen = stream._read, []
    stream._read = lambda block: seen.append(block) or read(block)
    feed = Feed(stream, 50)
    blocks_so_far = [len(seen) for _ in feed.epoch(3)]
    assert blocks_so_far[0] <= 4
    assert sorted(seen) == list(range(8))  # each block once in an epoch
    seen.clear()
    next(iter(feed.epoch(3, 20)))
    assert len(seen) <= 4


def test_a_feed_goes_on_anywhere(parquet: Any) -> None:
    path = parquet(frame())
    first = Feed(table(path).splits().train, 64)
    whole = [(*x, y) for x, y in first.epoch(1)]
    for start in (1, 7, len(whole) - 1):
        feed = Feed(table(path).splits().train, 64)
        feed.load_state_dict({**first.state_dict(), "epoch": 1, "batch": start})
        rest = [(*x, y) for x, y in feed.epoch(*feed.position)]
        assert len(rest) == len(whole) - start
        for here, there in zip(rest, whole[start:], strict=True):
            assert all(map(torch.equal, here, there))


def test_the_part_of_a_row_is_a_function_of_its_number() -> None:
    reading, rows = CellFormat(), pl.DataFrame({"x": range(20_000)})
    shares = {"val": 0.2, "test": 0.1}
    division = Division(seed=3, shares=shares)
    whole = division.parts(rows, 0, reading)
    assert np.bincount(whole) / 20_000 == pytest.approx([0.7, 0.2, 0.1], abs=0.02)
    for start in (1, 777, 15_000):
        piece = division.parts(rows.slice(start, 500), start, reading)
        assert (piece == whole[start : start + 500]).all()
    other = Division(seed=3, shares={"val": 0.4, "test": 0.1}).parts(rows, 0, reading)
    assert ((other == 2) == (whole == 2)).all()
    assert (Division(seed=4, shares=shares).parts(rows, 0, reading) != whole).any()


def test_a_group_is_in_one_part(parquet: Any) -> None:
    data = frame().with_columns(pl.Series("who", [f"g{k % 60}" for k in range(ROWS)]))
    task = table(parquet(data), split="group:who")
    splits = task.splits()
    assert "who" not in task.kinds
    parts = Division(seed=0, shares={"val": 0.15, "test": 0.15}, group="who").parts(
        data, 0, task.reading
    )
    found = data.with_columns(pl.Series("part", parts)).filter(pl.col("y").is_not_null())
    assert found.group_by("who").agg(pl.col("part").n_unique())["part"].max() == 1
    sizes = found.get_column("part").value_counts().sort("part").get_column("count").to_list()
    assert list(splits.facts["rows"].values()) == sizes


def test_statistics_are_kept_until_a_file_changes(parquet: Any, tmp_path: Path) -> None:
    path = parquet(frame())
    first = table(path)
    first.splits()
    kept = list((tmp_path / "cache" / "tables").iterdir())
    assert len(kept) == 1
    again = table(path)
    again.splits()
    assert again.state() == first.state()
    kept[0].write_text("{ broken")
    again = table(path)
    again.splits()
    assert again.state() == first.state()
    changed = frame().with_columns(pl.col("single") * 2)
    parquet(changed)
    os.utime(path, ns=(1, 1))
    other = table(path)
    other.splits()
    assert other.digest != first.digest
    assert other.encoder.numbers[0].scale == 2 * first.encoder.numbers[0].scale


def test_a_folder_is_one_table(parquet: Any, tmp_path: Path) -> None:
    data = frame()
    (tmp_path / "folder").mkdir()
    parquet(data[:1000], "folder/a.parquet")
    parquet(data[1000:].select(reversed(data.columns)), "folder/b.parquet", 300)
    whole, parts = table(parquet(data)), table(tmp_path / "folder", streaming="auto")
    one, two = whole.splits(), parts.splits()
    assert whole.encoder == parts.encoder
    assert in_some_order(rows_of(one.val)) == in_some_order(rows_of(two.val))


def test_the_commands_work_on_a_folder(
    parquet: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    data, run = tmp_path / "folder", tmp_path / "run"
    parquet(frame(), "folder/a.parquet")
    common = ["--target", "label", "--drop", "y,level", "--streaming", "always", "--width", "16"]
    train = ["train", "table", "--data", str(data), "--run", str(run), *common]
    quick = ["--updates", "6", "--quiet", "--threads", "1", "--no-doctor"]
    assert main([*train, *quick]) == 0
    assert main(["evaluate", str(run), "--data", str(data)]) == 0
    out = tmp_path / "out.parquet"
    assert main(["predict", str(run), "--data", str(data), "--out", str(out)]) == 0
    found = pl.read_parquet(out)
    assert found.height == ROWS
    assert set(found["prediction"]) <= {"yes", "no"}
    assert "accuracy" in capsys.readouterr().out
    keep = ["predict", str(run), "--data", str(data), "--out", str(out), "--force", "--keep"]
    assert main([*keep, "level,y"]) == 0
    kept = pl.read_parquet(out)
    assert kept.columns[:3] == ["row", "level", "y"]
    assert kept["y"].equals(frame()["y"])
    assert main([*keep, "levle"]) == 2
    assert "--keep: no column 'levle': did you mean 'level' or 'label'?" in capsys.readouterr().err


def spoilt(path: Path) -> None:
    """Overwrite some bytes within the data."""
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 400] = bytes(400)
    path.write_bytes(bytes(content))


def test_files_that_cannot_be_read_say_so_in_one_line(
    parquet: Any, tmp_path: Path, refusal: Callable[[Table, str], str]
) -> None:
    path = parquet(frame())
    spoilt(path)
    assert "rows 1," in refusal(table(path), "cannot be read .*: write the file again")
    path.write_bytes(path.read_bytes()[:1000])
    refusal(table(path), "no footer at its end")
    path.write_bytes(b"")
    refusal(table(path), "is empty: write it again")
    (tmp_path / "nothing").mkdir()
    refusal(table(tmp_path / "nothing"), "has no .parquet file")
    parquet(frame()[:0])
    refusal(table(path), "has a header but no rows")
    csv = tmp_path / "table.csv"
    csv.write_text("x,y\n1,2\n")
    refusal(table(csv), "write it as Parquet, python -c")
    refusal(table(parquet(frame()), val_data=csv), "is read whole|write it as Parquet")


def test_files_that_differ_say_so_in_one_line(
    parquet: Any, tmp_path: Path, refusal: Callable[[Table, str], str]
) -> None:
    folder, data = tmp_path / "folder", frame()
    parquet(data, "folder/a.parquet")
    parquet(data.drop("whole"), "folder/b.parquet")
    refusal(table(folder), "b.parquet has no column 'whole', which .*a.parquet has")
    parquet(data.with_columns(more=1), "folder/b.parquet")
    refusal(table(folder), "a.parquet has no column 'more', which .*b.parquet has")
    parquet(data.with_columns(pl.col("whole").cast(pl.String)), "folder/b.parquet")
    refusal(table(folder), "'whole' is String in .*b.parquet and Int64 in .*a.parquet")
    parquet(data.with_columns(whole=None), "folder/b.parquet")
    task = table(folder)
    assert task.splits().facts["missing values"]["whole"] > ROWS / 2
    refusal(table(folder, val_data=parquet(data.drop("text"))), "has no column 'text'")


def test_cells_that_do_not_fit_are_named(
    parquet: Any, refusal: Callable[[Table, str], str]
) -> None:
    data = frame()
    values = data["double"].to_list()
    values[2345] = float("inf")
    path = parquet(data.with_columns(double=pl.Series(values)))
    refusal(table(path), "row 2,346 of column 'double' is inf")
    assert table(path, nan="missing").splits().facts["missing values"]["double"] > 0
    digits = data["digits"].to_list()
    digits[1234] = "n/m"
    path = parquet(data.with_columns(digits=pl.Series(digits)))
    refusal(table(path), "row 1,235 contains 'n/m'")
    refusal(table(parquet(data.with_columns(y=None))), "'y' is empty in every row")
    refusal(table(parquet(data.with_columns(y=pl.lit("a")))), "one class only")
    refusal(table(parquet(data.with_columns(y=pl.col("whole").cast(pl.String) + "x")),
                  kind="regression"), "contains text such as")  # fmt: skip
    refusal(table(parquet(data), log_target=True), "which has no logarithm")
    refusal(table(parquet(data), split="time:when"), "--val-data FILE --test-data FILE")
    classes = table(parquet(data), target="label", quantiles=[0.1, 0.9])
    refusal(classes, "--quantiles is for a regression, and 'label' is a column of classes")
    refusal(table(parquet(data), target="prize"), "no column 'prize'")
    refusal(table(parquet(data), streaming="sometimes"), "--streaming 'sometimes' is unknown")


def test_what_takes_too_much_memory_is_refused_with_a_command(
    parquet: Any, tmp_path: Path, refusal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parquet(frame())
    monkeypatch.setattr(row_groups, "MOST_ROW_GROUP", 1000)
    refusal(table(path), "row_group_size=100_000")
    csv = tmp_path / "table.csv"
    frame().write_csv(csv)
    monkeypatch.setattr(on_disk, "MOST_CSV", 1000)
    said = refusal(table(csv, streaming="auto"), "write it as Parquet, python -c")
    command = said.partition('python -c "')[2].rstrip('"')
    monkeypatch.chdir(tmp_path)
    exec(command)
    monkeypatch.setattr(row_groups, "MOST_ROW_GROUP", 10**9)
    assert table(tmp_path / "table.parquet").splits().facts["rows"]["train"] > 1000


def test_rows_to_predict_are_checked(parquet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, data = parquet(frame()), frame()
    task = table(path)
    task.splits()
    monkeypatch.setattr(on_disk, "MOST_AS_FRAME", 0)
    lacking = parquet(data.drop("whole"), "lacking.parquet")
    with pytest.raises(DataError, match="column 'whole' is missing, and the model needs it"):
        task.unseen(lacking)
    with pytest.raises(DataError, match="no column 'y', the target"):
        task.read(parquet(data.drop("y"), "lacking.parquet"))
    with pytest.raises(DataError, match="no target in any row"):
        task.read(parquet(data.with_columns(y=pl.lit(None, pl.Float64)), "lacking.parquet"))
