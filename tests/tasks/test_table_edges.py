"""Tables at the edge: nothing in a column, too little in a file, more than anybody means."""

from __future__ import annotations

import polars as pl
import pytest

from trueloop.tasks.table import Table, checked_options

NOTHING = [None] * 40
NAN = [float("nan")] * 40
NUMBERS = list(range(40))
CLASSES = [k % 2 for k in NUMBERS]
DTYPES = (pl.String, pl.Float64, pl.Int64, pl.Boolean, pl.Date, pl.Null, pl.Categorical)


def table(path, **options) -> Table:
    return Table(Table.Options(target="y", **options), data=path, seed=0)


@pytest.fixture
def parquet(tmp_path):
    def write(**columns):
        pl.DataFrame(columns).write_parquet(tmp_path / "table.parquet")
        return tmp_path / "table.parquet"

    return write


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["auto", "classification", "regression"])
def test_a_target_without_a_value_is_named(parquet, refusal, dtype, kind):
    path = parquet(x=NUMBERS, y=pl.Series(NOTHING, dtype=dtype))
    refusal(
        table(path, kind=kind), "the target 'y' is empty in every row: choose a different --target"
    )


@pytest.mark.parametrize("kind", ["auto", "classification", "regression"])
def test_a_target_of_nan_alone_is_named(parquet, refusal, kind):
    path = parquet(x=NUMBERS, y=NAN)
    refusal(table(path, kind=kind), "row 1 of column 'y' is nan")
    refusal(table(path, kind=kind, nan="missing"), "the target 'y' is empty in every row")


@pytest.mark.parametrize("kind", ["auto", "classification", "regression"])
@pytest.mark.parametrize("categorical", [[], ["y"]])
def test_a_csv_target_without_a_value_is_named(table_file, refusal, kind, categorical):
    for cell in ("", "NA"):
        path = table_file("x,y", [f"{k},{cell}" for k in NUMBERS])
        if cell == "NA" and categorical:
            continue  # as a category, NA is text like any other
        task = table(path, kind=kind, categorical=categorical)
        refusal(task, "the target 'y' is empty in every row: choose a different --target")


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_input_without_a_value_is_left_out_and_pointed_out(parquet, dtype):
    splits = table(parquet(x=NUMBERS, z=pl.Series(NOTHING, dtype=dtype), y=CLASSES)).splits()
    assert splits.facts["left out"] == {"z": "empty in every row"}
    assert splits.facts["number columns"] == ["x"]
    (finding,) = [each for each in splits.findings if each.code == "TL714"]
    assert "'z'" in finding.message


def test_an_input_of_a_csv_without_a_value_is_left_out_and_not_asked_for_again(table_file):
    task = table(table_file("x,z,y", [f"{k},{'NA' if k % 2 else ''},{k % 2}" for k in NUMBERS]))
    assert task.splits().facts["left out"] == {"z": "empty in every row"}
    assert list(task.unseen(table_file("x", [], "n.csv").with_name("table.csv")).names) == ["row"]
    assert task.kinds == {"x": "number"}


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "is empty: give a file with a header and rows"),
        ("\n\n", "is empty: give a file with a header and rows"),
        ("x,y\n", "has a header but no rows"),
        ("x,y\n\n\n", "has a header but no rows"),
        ("x,y\n1,2\n", "1 row with a target, too few"),
        ("x,y\n1,a\n", "1 row with a target, too few"),
        ("x,y\n" + 40 * "1,\n", "the target 'y' is empty in every row"),
        ("x,y\n" + 40 * "1,\n" + "2,1\n", "1 row with a target, too few"),
        ("x,y\n" + 40 * "1,a\n", "one class only"),
    ],
)
def test_too_little_is_named(tmp_path, refusal, content, match):
    path = tmp_path / "table.csv"
    path.write_text(content)
    refusal(table(path), match)


def test_a_parquet_file_of_nothing_is_named(parquet, refusal):
    refusal(table(parquet()), "has no column: give a target and something to predict it from")
    empty = pl.Series([], dtype=pl.Float64)
    refusal(table(parquet(x=empty, y=empty)), "has a header but no rows")
    refusal(table(parquet(x=[1], y=[2])), "1 row with a target, too few")


def test_a_target_that_cannot_be_read_is_not_to_be_dropped(parquet, refusal):
    said = refusal(table(parquet(x=NUMBERS, y=[b"a"] * 40)), "'y' is Binary")
    assert "--drop" not in said
    assert said.endswith("choose a different --target")


def test_rows_keep_the_numbers_of_the_file_where_some_have_no_target(table_file, refusal):
    lines = [f"{'n/m' if k == 30 else k},{'' if k < 5 else k % 2}" for k in NUMBERS]
    refusal(table(table_file("x,y", lines)), "row 31 contains 'n/m'")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"layers": 100_000}, "--layers must be 1 to 64, not 100,000: write --layers 3"),
        ({"layers": 0}, "--layers must be 1 to 64, not 0"),
        ({"width": 10**9}, "--width must be 1 to 16,384, not 1,000,000,000: write --width 256"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_the_file_is_read(tmp_path, refusal, options, match):
    refusal(table(tmp_path / "no file.csv", **options), match)


def test_more_columns_than_the_network_trains_on_are_refused(table_file, refusal, monkeypatch):
    monkeypatch.setattr(checked_options, "MOST_COLUMNS", 3)
    path = table_file("a,b,c,d,y", [f"{k},{k},{k},{k},{k % 2}" for k in NUMBERS])
    refusal(table(path), "has 4 input columns, and 3 are the most .* --drop")
    table(path, drop=["a"]).splits()


def test_reading_a_wide_table_takes_time_by_the_column(table_file):
    """Twice the columns, twice the calls: no column is looked for among all others."""
    import cProfile
    import pstats

    def calls(count: int) -> int:
        names = [f"c{k}" for k in range(count)]
        lines = [",".join([*(f"{(k * (j + 3)) % 17}" for j in range(count)), f"{k % 2}"])
                 for k in range(40)]  # fmt: skip
        task = table(table_file(",".join([*names, "y"]), lines))
        profile = cProfile.Profile()
        profile.runcall(task.splits)
        return pstats.Stats(profile).total_calls  # type: ignore[attr-defined]

    calls(20)
    assert calls(400) < 2.5 * calls(200)
