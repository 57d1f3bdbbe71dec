"""Columns: what kind each is, how it is read, and that all is fitted on the training rows alone."""

from __future__ import annotations

import datetime
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from trueloop.errors import DataError
from trueloop.tasks.table.column_encoding import (
    FIRST,
    MISSING,
    UNKNOWN,
    CategoryColumn,
    CellFormat,
    NumberColumn,
    TableEncoder,
    categories,
    date_parts,
    kind_of,
    numbers,
    read_columns,
)

READING = CellFormat(missing=["na"])


def text(values, name="c") -> pl.Series:
    return pl.Series(name, values, dtype=pl.String)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5", None, "-3e5", "+4", ".5"], "number"),
        (["1", "NA", "na", "2"], "number"),
        (["1"] * 9 + ["x"], "number"),
        (["1"] * 8 + ["x", "y"], "category"),
        (["a", "b", None], "category"),
        (["True", "false"], "category"),
        (["2024-01-05", "2023-12-31 23:59", "2023-12-31T23:59:01.5Z"], "date"),
        (["2024-01-05", "soon"], "category"),
    ],
)
def test_kinds_of_text_columns(values, kind):
    assert kind_of(text(values), READING) == kind


def test_kinds_of_typed_columns(one_line):
    day = datetime.date(2024, 1, 5)
    assert kind_of(pl.Series("c", [1, 2]), READING) == "number"
    assert kind_of(pl.Series("c", [True]), READING) == "category"
    assert kind_of(pl.Series("c", [day]), READING) == "date"
    assert kind_of(pl.Series("c", [day - day]), READING) == "number"
    assert kind_of(pl.Series("c", ["a"], dtype=pl.Categorical), READING) == "category"
    assert kind_of(pl.Series("c", [1, 2]), CellFormat(categorical=["c"])) == "category"
    with pytest.raises(DataError, match="--drop c") as error:
        kind_of(pl.Series("c", [[1], [2]]), READING)
    one_line(error)


def test_an_empty_column_is_found_whatever_its_type():
    assert kind_of(text([None, None]), READING) == "empty"
    assert kind_of(text([None, "NA"]), CellFormat(missing=["na"])) == "empty"
    for dtype in (pl.Float64, pl.Int8, pl.Date, pl.Null, pl.Boolean, pl.Categorical):
        assert kind_of(pl.Series("c", [None], dtype=dtype), READING) == "empty"


def test_numbers_are_read_as_python_reads_them():
    cells = ["1", "+2.5", "-3e5", ".5", "5.", "0012", "1e-320"]
    assert numbers(text([*cells, None, "NA"]), READING).tolist()[:-2] == [float(c) for c in cells]
    assert np.isnan(numbers(text([None, "NA"]), READING)).all()
    assert numbers(pl.Series("c", [2**40, None]), READING)[0] == 2.0**40


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (text(["1", "2", "abc"]), "'c' contains numbers, but row 3 contains 'abc'.*--drop c"),
        (text(["1", "NaN"]), "row 2 of column 'c' is nan.*--nan missing"),
        (text(["-inf", "1"]), "row 1 of column 'c' is -inf"),
        (text(["1", "1e999"]), "row 2 of column 'c' is inf"),
        (pl.Series("c", [1.0, float("nan")]), "row 2 of column 'c' is nan"),
    ],
)
def test_cells_that_are_no_numbers_are_named(column, match, one_line):
    with pytest.raises(DataError, match=match) as error:
        numbers(column, READING)
    one_line(error)


def test_nan_may_count_as_missing():
    reading = CellFormat(nan_is_missing=True)
    assert np.isnan(numbers(text(["1", "NaN", "inf"]), reading)).tolist() == [False, True, True]


def test_dates_become_numbers(one_line):
    parts = date_parts(text(["1970-01-01", "2024-02-29T18:00:30Z", None]), READING)
    assert list(parts) == ["c: days", "c: month", "c: weekday", "c: hour"]
    days = (datetime.date(2024, 2, 29) - datetime.date(1970, 1, 1)).days
    assert parts["c: days"][:2].tolist() == pytest.approx([0.0, days + 0.75 + 30 / 86_400], 1e-12)
    assert parts["c: weekday"][:2].tolist() == [4.0, 4.0]
    assert parts["c: hour"][1] == 18
    assert all(np.isnan(part[2]) for part in parts.values())
    typed = date_parts(pl.Series("c", [datetime.datetime(2024, 2, 29, 18)]), READING)
    assert typed["c: days"][0] == days + 0.75
    with pytest.raises(DataError, match="row 2 contains '2024-02-30'") as error:
        date_parts(text(["2024-02-28", "2024-02-30"]), READING)
    one_line(error)


def test_a_missing_date_may_be_written_out_and_a_time_may_have_parts_of_a_second():
    parts = date_parts(text(["2024-02-28", "NA", "2024-02-28 12:00:00.5+02:00"]), READING)
    assert np.isnan(parts["c: days"][1])
    assert parts["c: days"][2] - parts["c: days"][0] == pytest.approx(0.5 + 0.5 / 86_400, abs=1e-9)


def test_truth_has_one_spelling_and_whole_numbers_no_point():
    assert categories(text(["True", "FALSE", "x", None])).to_list() == ["true", "false", "x", None]
    assert categories(pl.Series([True, False])).to_list() == ["true", "false"]
    assert categories(pl.Series([1.0, 2.0, None])).to_list() == ["1", "2", None]


@given(st.lists(st.floats(-1e300, 1e300) | st.none(), min_size=1, max_size=60))
@settings(max_examples=100, deadline=None)
def test_numbers_stay_bounded_and_finite(values):
    array = np.array([np.nan if v is None else v for v in values])
    column = NumberColumn.fit("c", array)
    if column is None:
        assert len(np.unique(array[~np.isnan(array)])) <= 1
        return
    for part in column.encode(np.concatenate((array, [1e308, -1e308, np.nan]))):
        assert np.isfinite(part).all()
        assert np.abs(part).max() <= 3.0


def test_scaling_is_by_median_and_quartiles():
    values = np.arange(101.0)
    column = NumberColumn.fit("c", values)
    assert (column.median, column.scale, column.flag) == (50.0, 50.0, False)
    z = (values - 50) / 50
    assert np.allclose(column.encode(values)[0], z / np.sqrt(1 + (z / 3) ** 2))


def test_a_missing_number_takes_the_median_and_says_so():
    column = NumberColumn.fit("c", np.array([0.0, 1.0, 2.0, np.nan]))
    scaled, flag = column.encode(np.array([np.nan, 1.0]))
    assert scaled.tolist() == [0.0, 0.0]
    assert flag.tolist() == [1.0, 0.0]


def test_columns_that_tell_nothing_are_dropped():
    assert NumberColumn.fit("c", np.array([2.0, 2.0])) is None
    assert NumberColumn.fit("c", np.array([np.nan, np.nan])) is None
    assert NumberColumn.fit("c", np.array([2.0, np.nan])) is not None
    assert CategoryColumn.fit("c", text(["a", "a"])) == "the same value in every row"
    assert "a different value" in CategoryColumn.fit("c", text([str(k) for k in range(40)]))


def test_rare_and_unseen_categories_are_unknown():
    column = CategoryColumn.fit("c", text(["b", "a", "b", "a", "once", None]))
    assert column.values == ["a", "b"]
    assert column.size == 4
    coded = column.encode(text(["a", "b", "once", "new", None])).tolist()
    assert coded == [FIRST, FIRST + 1, UNKNOWN, UNKNOWN, MISSING]


FRAME = pl.DataFrame(
    {
        "n": ["1", "2", "3", None, "5", "6", "7", "8"],
        "k": ["a", "b", "a", "b", "a", "b", "new", None],
        "d": ["2024-01-01"] * 4 + ["2024-03-01"] * 4,
    }
)
KINDS = {"n": "number", "k": "category", "d": "date"}


def test_only_the_given_rows_are_fitted():
    rows = np.arange(6)
    state = TableEncoder.fit(read_columns(FRAME, KINDS, READING), rows).state()
    changed = FRAME.with_columns(
        pl.when(pl.int_range(8) >= 6).then(pl.lit("99")).otherwise("n").alias("n"),
        pl.when(pl.int_range(8) >= 6).then(pl.lit("z")).otherwise("k").alias("k"),
        pl.when(pl.int_range(8) >= 6).then(pl.lit("1999-09-09")).otherwise("d").alias("d"),
    )
    assert not changed.equals(FRAME)
    assert TableEncoder.fit(read_columns(changed, KINDS, READING), rows).state() == state
    assert TableEncoder.fit(read_columns(changed, KINDS, READING), np.arange(8)).state() != state


def test_the_state_is_json_and_comes_back():
    raw = read_columns(FRAME, KINDS, READING)
    encoder = TableEncoder.fit(raw, np.arange(8))
    again = TableEncoder.from_state(json.loads(json.dumps(encoder.state())))
    first, second = encoder.encode(raw), again.encode(raw)
    assert (first[0] == second[0]).all()
    assert (first[1] == second[1]).all()
    assert first[0].dtype == np.float32
    assert first[0].shape == (8, encoder.inputs)
    assert first[1].shape == (8, len(encoder.sizes))


def test_an_absent_column_is_named(one_line):
    with pytest.raises(DataError, match="column 'k' is missing") as error:
        read_columns(FRAME.drop("k"), KINDS, READING)
    one_line(error)


@pytest.mark.parametrize(
    ("cells", "refused"),
    [
        (["4,43", "50,88", "7"], True),
        (["1.234,5", "12,0", None], True),
        (["1,234.5", "12,345"], True),
        (["4,43", "red", "blue"], False),
        (["1,2,3", "2,3,4"], False),
        (["a,b", "b,c"], False),
        (["1", "2"], False),
    ],
)
def test_numbers_with_a_comma_are_no_categories(cells, refused, one_line):
    column = pl.Series("spend €", cells, dtype=pl.String)
    if refused:
        with pytest.raises(DataError, match="numbers with a comma, such as '") as error:
            kind_of(column, CellFormat())
        assert one_line(error).endswith("--categorical 'spend €'")
    else:
        assert kind_of(column, CellFormat()) == ("number" if cells == ["1", "2"] else "category")
    assert kind_of(column, CellFormat(categorical=["spend €"])) == "category"
