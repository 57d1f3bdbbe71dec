"""Rows divided by time, by group and by file: exact, reproducible, and nothing in two parts."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings, strategies as st

from trueloop.errors import ConfigError
from trueloop.tasks.table import Table
from trueloop.tasks.table.ordered_split import SplitOption

SHARES = st.lists(st.floats(0.05, 0.4), min_size=1, max_size=2)
RANKS = st.lists(st.integers(0, 12), min_size=4, max_size=120).map(
    lambda values: np.unique(values, return_inverse=True)[1].astype(np.int64)
)


def table(path, **options) -> Table:
    return Table(Table.Options(target="y", **options), data=path, seed=0)


@given(RANKS, SHARES, st.integers(0, 5))
@settings(max_examples=150, deadline=None)
@pytest.mark.parametrize("by", ["time", "group"])
def test_no_time_or_group_is_in_two_parts(by, ranks, shares, seed):
    assume(ranks.max() >= len(shares))
    split = SplitOption(by, "c")
    parts = split.divide(ranks, shares, seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(ranks)))
    values = [set(ranks[part].tolist()) for part in parts]
    assert all(values)
    assert sum(map(len, values)) == len(set().union(*values))
    again = split.divide(ranks, shares, seed)
    assert all((one == other).all() for one, other in zip(parts, again, strict=True))
    if by == "time":
        train, *held_out = values  # the first share is the latest
        for later, earlier in zip(held_out, [*held_out[1:], train], strict=True):
            assert min(later) > max(earlier)


@given(RANKS, SHARES, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
@pytest.mark.parametrize("by", ["time", "group"])
def test_the_order_of_the_rows_does_not_matter(by, ranks, shares, random):
    assume(ranks.max() >= len(shares))
    order = list(range(len(ranks)))
    random.shuffle(order)
    split = SplitOption(by, "c")
    one = [set(ranks[part].tolist()) for part in split.divide(ranks, shares, 3)]
    shuffled = ranks[order]
    other = [set(shuffled[part].tolist()) for part in split.divide(shuffled, shares, 3)]
    assert one == other


def test_parts_are_as_large_as_asked_where_groups_and_times_are_small():
    ranks = np.repeat(np.arange(400), 3)
    for by in ("time", "group"):
        sizes = [len(part) for part in SplitOption(by, "c").divide(ranks, [0.15, 0.2], 0)]
        assert sizes == [780, 180, 240]


def test_another_seed_draws_other_groups_and_the_same_times():
    ranks = np.repeat(np.arange(60), 5)
    group, time = SplitOption("group", "c"), SplitOption("time", "c")
    assert set(group.divide(ranks, [0.2], 0)[1]) != set(group.divide(ranks, [0.2], 1)[1])
    assert (time.divide(ranks, [0.2], 0)[1] == time.divide(ranks, [0.2], 1)[1]).all()


def test_a_giant_group_stays_in_training():
    ranks = np.array([0] * 900 + [1] * 50 + [2] * 50)
    train, test, val = SplitOption("group", "c").divide(ranks, [0.15, 0.15], 0)
    assert (len(train), len(test), len(val)) == (900, 50, 50)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("tim:when", "--split 'tim:when' is unknown: write random, time:COLUMN or group:COLUMN"),
        ("time", "--split 'time' names no column"),
        ("group:", "--split 'group:' names no column"),
        ("random:x", "is unknown"),
        ("", "is unknown"),
    ],
)
def test_a_split_that_is_not_understood(text, match):
    with pytest.raises(ConfigError, match=match):
        SplitOption.parse(text)


def visits(count: int = 120) -> list[str]:
    """Patient, day and time of each visit, not in order of time; the target alternates."""
    start = datetime.datetime(2023, 12, 20, 7)
    lines = []
    for k in range(count):
        moment = start + datetime.timedelta(hours=7 * ((37 * k) % count), seconds=k % 2)
        lines.append(f"{k % 9},p{(k * 5) % 24},{moment.isoformat(' ')},{k % 2}")
    return lines


HEADER = "x,patient,when,y"


def rows_of(task: Table, splits) -> dict[str, pl.DataFrame]:
    """The rows of the file in each part, found by what the encoder makes of all rows."""
    frame = pl.read_csv(task.data)
    return {name: frame[rows.tolist()] for name, rows in task.parts.items()}


def test_a_table_is_divided_by_time_and_keeps_the_column(table_file):
    path = table_file(HEADER, visits())
    task = table(path, split="time:when")
    splits = task.splits()
    parts = rows_of(task, splits)
    assert parts["train"]["when"].max() < parts["val"]["when"].min()
    assert parts["val"]["when"].max() < parts["test"]["when"].min()
    assert [parts[name].height for name in ("train", "val", "test")] == [84, 18, 18]
    assert "when: days" in splits.facts["number columns"]
    assert splits.facts["split"] == "time:when"
    again = table(path, split="time:when").splits()
    assert (again.val[0][0] == splits.val[0][0]).all()


def test_seconds_count_and_typed_columns_are_divided_as_text_is(table_file, tmp_path):
    path = table_file(HEADER, visits())
    frame = pl.read_csv(path).with_columns(pl.col("when").str.to_datetime())
    frame.write_parquet(tmp_path / "typed.parquet")
    one, other = (
        table(path, split="time:when"),
        table(tmp_path / "typed.parquet", split="time:when"),
    )
    one.splits()
    other.splits()
    for name in ("train", "val", "test"):
        assert (one.parts[name] == other.parts[name]).all()


def test_a_column_to_divide_by_may_be_dropped_as_an_input(table_file):
    task = table(table_file(HEADER, visits()), split="time:when", drop=["when"])
    assert task.splits().facts["number columns"] == ["x"]
    assert len(task.parts["val"]) == 18


def test_a_table_is_divided_by_group_and_leaves_the_column_out(table_file):
    task = table(table_file(HEADER, visits()), split="group:patient")
    splits = task.splits()
    patients = [set(part["patient"]) for part in rows_of(task, splits).values()]
    assert sum(map(len, patients)) == len(set().union(*patients)) == 24
    assert "patient" not in task.kinds


def test_files_of_their_own_are_the_parts(table_file):
    main = table_file(HEADER, visits(), "main.csv")
    val = table_file(
        "y,when,patient,x,more", ["1,2024-05-01,p1,3,a", "0,2024-05-02,p2,4,b"], "v.csv"
    )
    test = table_file(HEADER, ["3,p1,2024-06-01,1"], "t.csv")
    task = table(main, val_data=val, test_data=test)
    splits = task.splits()
    assert splits.facts["rows"] == {"train": 120, "val": 2, "test": 1}
    assert splits.facts["validation file"] == str(val)
    assert splits.val[1].tolist() == [1, 0]
    shared = table(main, val_data=val).splits()
    assert shared.facts["rows"] == {"train": 102, "val": 2, "test": 18}
    other = Table(data=None)
    other.restore({**task.state(), "options": {**vars(task.options), "val_data": str(val)}})
    assert other.options.val_data == val


@pytest.mark.parametrize(
    ("lines", "match"),
    [
        (["n/m,p1,2024-06-01,1"], "row 1 of v.csv contains 'n/m'"),
        (["3,p1,2024-06-01,"], "no row with a target is left for validation"),
    ],
)
def test_a_cell_of_a_second_file_is_named_with_its_file(table_file, refusal, lines, match):
    main = table_file(HEADER, visits(), "main.csv")
    refusal(table(main, val_data=table_file(HEADER, lines, "v.csv")), match)


def test_a_second_file_must_have_the_columns(table_file, refusal):
    main = table_file(HEADER, visits(), "main.csv")
    val = table_file("x,when,y", ["3,2024-06-01,1"], "v.csv")
    refusal(table(main, val_data=val), "v.csv has no column 'patient', which .*main.csv has")
    refusal(table(main, test_data=val.with_name("none.csv")), "no file .*none.csv")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"split": "time:wen"}, "--split: .*no column 'wen': did you mean 'when'"),
        (
            {"split": "time:patient"},
            "--split time:patient: the column contains neither numbers nor",
        ),
        ({"split": "group:y"}, "'y' is the target: write --split with a different column"),
        ({"split": "group:one"}, "has 1 different values, too few groups for 3 parts"),
        ({"split": "group:gaps"}, "row 8 has no value in 'gaps', by which --split divides"),
        ({"split": "time:gaps"}, "row 8 has no value in 'gaps', by which --split divides"),
    ],
)
def test_splits_that_cannot_be(table_file, refusal, options, match):
    lines = [f"{line},1,{'' if k == 7 else k}" for k, line in enumerate(visits())]
    refusal(table(table_file("x,patient,when,y,one,gaps", lines), **options), match)


def test_a_missing_time_in_parquet_is_refused(tmp_path, refusal):
    for value, dtype in ((None, pl.Datetime("us")), (float("nan"), pl.Float64)):
        when = pl.Series([value, *range(1, 40)] if dtype == pl.Float64 else
                         [value, *(datetime.datetime(2024, 1, 1 + k % 28) for k in range(39))],
                         dtype=dtype)  # fmt: skip
        pl.DataFrame({"x": range(40), "when": when, "y": [0, 1] * 20}).write_parquet(
            tmp_path / "t.parquet"
        )
        refusal(
            table(tmp_path / "t.parquet", split="time:when", nan="missing", drop=["when"]),
            "row 1 has no value in 'when'",
        )


def test_training_rows_of_one_class_are_refused(table_file, refusal):
    lines = [f"{k},{k},{int(k >= 50)}" for k in range(60)]
    said = "the training rows have one class of the target 'y' only"
    refusal(table(table_file("x,when,y", lines), split="time:when"), said)


def test_a_class_that_is_held_out_alone_is_pointed_out(table_file):
    main = table_file(HEADER, visits(), "main.csv")
    task = table(main, val_data=table_file(HEADER, ["3,p1,2024-06-01,2"], "v.csv"))
    (found,) = [each for each in task.splits().findings if each.code == "TL716"]
    assert (found.severity, found.subject) == ("warning", "class '2'")
    assert task.classes == ["0", "1", "2"]


def findings(path, **options) -> list[str]:
    found = table(path, **options).splits().findings
    return [each.fix.split(",")[0] for each in found if each.code == "TL718"]


def test_times_and_groups_that_are_divided_at_random_are_pointed_out(table_file):
    path = table_file(HEADER, visits())
    both = ["Write --split time:when", "Write --split group:patient"]
    assert findings(path) == both
    assert findings(path, drop=["when", "patient"]) == both
    assert findings(path, split="time:when") == []
    assert findings(path, split="group:patient") == []
    assert findings(path, val_data=table_file(HEADER, visits(30), "v.csv")) == []


def test_the_split_that_is_advised_can_be_written_as_it_is(table_file):
    first = datetime.date(2024, 1, 1)
    days = [first + datetime.timedelta(days=k) for k in range(112)]
    lines = [f"{k * 13 % 17},{day},{k % 2}" for k, day in enumerate(days)]
    assert findings(table_file("x,sign-up date,y", lines)) == ["Write --split 'time:sign-up date'"]
    lines[5], lines[70] = "4,,1", "4,,0"
    assert findings(table_file("x,when,y", lines, "gaps.csv")) == [
        "Fill the empty cells of the column (2) or remove their rows"
    ]


@pytest.mark.parametrize(
    ("name", "cell", "pointed_out"),
    [
        ("year", lambda k: 1900 + k // 2, True),
        ("timestamp", lambda k: 1_700_000_000 + 60 * k, True),
        ("year", lambda k: 1900 + k * 7 % 50, False),  # of construction: not in order
        ("age", lambda k: k // 2, False),
        ("birthdate", lambda k: f"19{10 + k % 80}-01-01", False),
        ("season", lambda k: f"202{k % 5}-01-01", False),  # five dates are categories
        ("user_id", lambda k: k % 30, True),
        ("userId", lambda k: f"u{k % 30}", True),
        ("id", lambda k: k, False),  # one of its own in each row: TL717
        ("store_id", lambda k: k % 4, False),
        ("customer", lambda k: f"c{k if k > 60 else 0}", False),
        ("colour", lambda k: f"c{k % 30}", False),
    ],
)
def test_columns_that_say_time_or_group_and_ordinary_ones(table_file, name, cell, pointed_out):
    path = table_file(f"x,{name},y", [f"{k * 13 % 17},{cell(k)},{k % 2}" for k in range(120)])
    assert bool(findings(path)) is pointed_out
