"""The table task as a whole: what it makes of a file, and the files it refuses."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest
import torch

from trueloop import losses
from trueloop.errors import DataError
from trueloop.tasks.table import Table
from trueloop.tasks.table.network import ScaledSquaredError, TargetScale

HEADER = "size,colour,when,price,sold"


def rows(count: int = 60) -> list[str]:
    """A small table: price depends on size and colour; some cells are missing."""
    lines = []
    for k in range(count):
        size, colour = f"{(7 * k) % 23}.5", ("red", "green", "blue")[k % 3]
        price = 100 + 3 * ((7 * k) % 23) + 20 * (k % 3)
        if k % 11 == 5:
            size = ""
        if k % 13 == 6:
            colour = ""
        lines.append(f"{size},{colour},2024-0{1 + k % 9}-11,{price},{'yes' if k % 4 else 'no'}")
    return lines


def table(path, target="price", **options) -> Table:
    return Table(Table.Options(target=target, **options), data=path, seed=0)


def test_regression_end_to_end(table_file):
    task = table(table_file(HEADER, rows()), drop=["sold"])
    splits = task.splits()
    assert (task.kind, task.classes) == ("regression", None)
    assert splits.facts["rows"] == {"train": 42, "val": 9, "test": 9}
    assert splits.facts["missing values"] == {"size": 5, "colour": 5}
    (numbers, categories), targets = splits.train
    assert numbers.dtype == torch.float32
    assert categories.dtype == torch.int64
    assert targets.dtype == torch.float32
    assert 100 <= targets.min() <= targets.max() <= 206  # the target's own unit
    output = task.loss_fn()(task.model(), splits.train)
    assert output.outputs.shape == targets.shape
    # The untrained network is about as good as the mean, and so the loss about 1.
    assert 0.3 < output.loss.item() < 3
    assert 50 < output.outputs.mean().item() < 300


def test_two_classes_are_binary_three_multiclass(table_file):
    path = table_file(HEADER, rows())
    binary = table(path, "sold")
    splits = binary.splits()
    assert (binary.kind, binary.classes) == ("binary", ["no", "yes"])
    assert binary.model().eval()(*splits.val[0]).shape == splits.val[1].shape
    binary.loss_fn()(binary.model(), splits.train)
    many = table(path, "colour")
    splits = many.splits()
    assert (many.kind, many.classes) == ("multiclass", ["blue", "green", "red"])
    assert splits.facts["rows without a target, dropped"] == 5
    assert many.model()(*splits.val[0]).shape == (len(splits.val[1]), 3)
    share = torch.bincount(splits.val[1]) / len(splits.val[1])
    assert (share - 1 / 3).abs().max() < 0.1


@pytest.mark.parametrize(
    ("values", "kind", "classes"),
    [
        (["0", "1"], "binary", ["0", "1"]),
        (["0.0", "1.0"], "binary", ["0", "1"]),
        (["1.5", "2.5"], "binary", ["1.5", "2.5"]),
        (["True", "False"], "binary", ["false", "true"]),
        (["9", "10", "11"], "multiclass", ["9", "10", "11"]),
        ([str(k) for k in range(21)], "regression", None),
        (["1.5", "2.5", "3.5"], "regression", None),
    ],
)
def test_the_target_decides_the_kind(table_file, values, kind, classes):
    lines = [f"{k % 7},{values[k % len(values)]}" for k in range(63)]
    task = table(table_file("x,y", lines), "y")
    task.splits()
    assert (task.kind, task.classes) == (kind, classes)


def test_the_kind_can_be_asked_for(table_file):
    lines = [f"{k % 7},{k % 5}" for k in range(40)]
    path = table_file("x,y", lines)
    task = table(path, "y", kind="regression")
    task.splits()
    assert task.kind == "regression"
    task = table(path, "y", kind="classification")
    task.splits()
    assert task.kind == "multiclass"


def test_rows_that_are_held_out_change_nothing_that_is_fitted(table_file):
    lines = rows()
    task = table(table_file(HEADER, lines))
    splits = task.splits()
    train = {round(t, 3) for t in splits.train[1].tolist()}
    for k, line in enumerate(lines):
        size, colour, when, price, sold = line.split(",")
        if float(price) not in train:
            lines[k] = ",".join((size and "999", colour and "violet", when, price, sold))
    changed = table(table_file(HEADER, lines, "changed.csv"))
    assert not torch.equal(changed.splits().val[0][0], splits.val[0][0])
    state, again = task.state(), changed.state()
    assert state.pop("digest") != again.pop("digest")
    assert state == again


def test_state_is_json_and_gives_the_same_rows_and_model(table_file):
    path = table_file(HEADER, rows())
    task = table(path, drop=["sold"], width=16)
    task.splits()
    other = Table(data=None, seed=0)
    other.restore(json.loads(json.dumps(task.state())))
    torch.manual_seed(0)
    model = task.model().eval()
    torch.manual_seed(0)
    twin = other.model().eval()
    first, second = task.unseen(path), other.unseen(path)
    assert second.names == {"row": list(range(1, 61))}
    assert torch.equal(model(*first.inputs), twin(*second.inputs))
    inputs, targets = other.read(path)
    assert torch.equal(inputs[0], first.inputs[0])
    assert targets.tolist() == [float(line.split(",")[3]) for line in rows()]


def test_unseen_rows_may_lack_the_target_and_hold_what_is_new(table_file, one_line):
    task = table(table_file(HEADER, rows()), drop=["sold"])
    task.splits()
    path = table_file("colour,size,extra,when", ["violet,,1,2030-01-01", ",3,2,"], "new.csv")
    unseen = task.unseen(path)
    outputs = task.model().eval()(*unseen.inputs)
    assert torch.isfinite(outputs).all()
    assert task.predictions(outputs)["prediction"] == pytest.approx(outputs.tolist())
    path = table_file("colour,when", ["red,2024-01-01"], "lacks.csv")
    with pytest.raises(
        DataError, match="column 'size' is missing, and the model needs it"
    ) as error:
        task.unseen(path)
    one_line(error)


def test_new_rows_need_no_column_that_training_made_no_use_of(table_file):
    lines = [f"{line},id{k},same" for k, line in enumerate(rows())]
    task = table(table_file(f"{HEADER},note,place", lines), drop=["sold"])
    task.splits()
    assert set(task.encoder.dropped) >= {"note", "place"}
    new = table_file("size,colour,when", ["1,red,2024-01-01", "2,blue,2024-02-01"], "new.csv")
    other = Table(data=None, seed=0)
    other.restore(json.loads(json.dumps(task.state())))
    for each in (task, other):
        assert len(each.unseen(new).inputs[0]) == 2
    assert set(task.state()["kinds"]) == {"size", "colour", "when"}  # what predict.py needs


def test_reading_labelled_rows_checks_the_target(table_file, one_line):
    task = table(table_file(HEADER, rows()), "colour")
    task.splits()
    good = table_file(HEADER, ["1,red,2024-01-01,100,yes", "1,,2024-01-01,100,no"], "good.csv")
    inputs, targets = task.read(good)
    assert targets.tolist() == [2]
    assert len(inputs[0]) == 1
    bad = table_file(HEADER, ["1,violet,2024-01-01,100,yes"], "bad.csv")
    with pytest.raises(DataError, match="target 'violet', a class that training did not") as error:
        task.read(bad)
    one_line(error)
    without = table_file("size,when,price,sold", ["1,2024-01-01,100,yes"], "without.csv")
    with pytest.raises(DataError, match="no column 'colour', the target") as error:
        task.read(without)
    one_line(error)


def test_useless_columns_are_left_out_and_said(table_file):
    lines = [f"{k},name{k},same,5,{k % 3}.5" for k in range(40)]
    task = table(table_file("x,id,text,five,y", lines), "y")
    facts = task.splits().facts
    assert set(facts["left out"]) == {"id", "text", "five"}
    assert facts["number columns"] == ["x"]


def test_parquet_works_as_csv_does(tmp_path, table_file):
    path = table_file(HEADER, rows())
    pl.read_csv(path, try_parse_dates=True).write_parquet(tmp_path / "table.parquet")
    from_csv, from_parquet = table(path, "sold"), table(tmp_path / "table.parquet", "sold")
    one, two = from_csv.splits(), from_parquet.splits()
    assert torch.allclose(one.train[0][0], two.train[0][0])
    assert torch.equal(one.train[0][1], two.train[0][1])
    assert torch.equal(one.train[1], two.train[1])


BAD_TARGETS = [
    ({"target": ""}, "write --target NAME, of: size, colour, when, price, sold"),
    ({"target": "prize"}, "no column 'prize'.*did you mean 'price'"),
    ({"drop": ["color"]}, "--drop: .*no column 'color': did you mean 'colour'"),
    ({"drop": ["price"]}, "'price' is the target"),
    ({"drop": ["size", "colour", "when", "sold"]}, "--drop leaves no column"),
    ({"categorical": ["sizes"]}, "--categorical: .*did you mean 'size'"),
    ({"target": "colour", "kind": "regression"}, "'colour' contains text such as 'red'"),
    ({"target": "when"}, "contains dates"),
    ({"kind": "regresion"}, "did you mean 'regression'"),
    ({"nan": "ignore"}, "--nan 'ignore' is unknown"),
    ({"val_share": 0.0}, "--val-share 0 and --test-share"),
    ({"val_share": 0.6, "test_share": 0.5}, "leave no rows to train on"),
    ({"dropout": 1.0}, "--dropout must be 0 to below 1"),
    ({"width": 0}, "--width must be 1 to 16,384, not 0: write --width 256"),
]


@pytest.mark.parametrize(("options", "match"), BAD_TARGETS)
def test_options_that_do_not_fit(table_file, options, match, refusal):
    refusal(table(table_file(HEADER, rows()), **{"target": "price", **options}), match)


BAD_FILES = [
    ("x,y", [f"{k},a" for k in range(30)], "one class only \\('a'\\)"),
    ("x,y", [f"{k}," for k in range(30)], "target 'y' is empty in every row"),
    ("x,y", [f"{k},name{k}" for k in range(30)], "30 different values in 30 rows"),
    ("x,y", [f"{k},{k % 2}" for k in range(10)], "10 rows with a target, too few"),
    ("x,y", [f",{k % 2}" for k in range(30)], "no column to learn from \\(x: empty in every row"),
    ("x,y", [f"{'n/m' if k == 16 else k},{k % 2}" for k in range(30)], "row 17 contains 'n/m'"),
    ("x,y", [f"{'NaN' if k == 4 else k},{k % 2}" for k in range(30)], "row 5 of column 'x' is nan"),
    ("x,y", [f"{k % 3},{'inf' if k == 4 else k}" for k in range(40)], "row 5 of column 'y' is inf"),
    ("x,y", [f"{k},{'' if k == 2 else f'{k}e{37 + k}'}" for k in range(30)], "row 4 .* 3e\\+40"),
    ("x,y", [f"5,{k % 2}" for k in range(30)], "no column to learn from \\(x: the same value"),
]


@pytest.mark.parametrize(("header", "lines", "match"), BAD_FILES)
def test_files_that_cannot_be_learnt_from(table_file, header, lines, match, refusal):
    refusal(table(table_file(header, lines), "y"), match)


def test_a_constant_number_is_no_target(table_file, refusal):
    path = table_file("x,y", [f"{k},7" for k in range(30)])
    refusal(table(path, "y"), "one class only")
    refusal(table(path, "y", kind="regression"), "'y' is 7 in every training row")


def test_a_logarithm_needs_positive_targets(table_file, refusal):
    path = table_file("x,y", [f"{k},{k - 3}" for k in range(40)])
    refusal(table(path, "y", log_target=True), "row 1 has the target -3")


def test_without_data_it_says_what_to_write(refusal):
    refusal(Table(), "write --data FILE.csv --target COLUMN")


def test_nan_as_missing(table_file):
    path = table_file("x,y", [f"{'NaN' if k == 4 else k},{k % 2}" for k in range(30)])
    assert table(path, "y", nan="missing").splits().facts["missing values"] == {"x": 1}


@pytest.mark.parametrize("log", [False, True])
def test_the_loss_is_the_standardised_one_and_the_output_in_the_targets_unit(log):
    rng = np.random.default_rng(0)
    targets = np.exp(rng.normal(8, 1, 500)) if log else rng.normal(5000, 700, 500)
    inner = np.log(targets) if log else targets
    centre, scale = inner.mean(), inner.std()
    standardised = rng.normal(0, 1, 500)
    head, criterion = TargetScale(centre, scale, log), ScaledSquaredError(scale, log)
    outputs = head(torch.tensor(standardised, dtype=torch.float32))
    expected = standardised * scale + centre
    assert np.allclose(outputs.numpy(), np.exp(expected) if log else expected, rtol=1e-4)
    loss = criterion(outputs, torch.tensor(targets, dtype=torch.float32))
    assert loss.item() == pytest.approx(
        ((standardised - (inner - centre) / scale) ** 2).mean(), 1e-3
    )


def test_the_head_stays_in_full_precision_under_autocast(table_file):
    task = table(table_file(HEADER, rows()), drop=["sold"])
    splits = task.splits()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = task.loss_fn()(task.model(), splits.train)
    assert output.outputs.dtype == torch.float32


def test_it_learns_a_table_with_missing_values_and_categories(table_file):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    task = table(table_file(HEADER, rows(300)), drop=["sold", "when"], width=64)
    splits = task.splits()
    model, loss_fn = task.model(), task.loss_fn()
    assert isinstance(loss_fn, losses.Supervised)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    for _ in range(150):
        loss_fn(model, splits.train).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        outputs = model.eval()(*splits.test[0])
    error = ((outputs - splits.test[1]) ** 2).mean() / splits.test[1].var()
    assert error.item() < 0.25  # a missing size or colour cannot be made up for


def test_small_tables_train_in_small_batches(table_file):
    task = table(table_file("x,y", [f"{k},{k % 2}" for k in range(24)]), "y")
    splits = task.splits()
    assert task.recipe.batch_size <= len(splits.train[1])
    assert math.isclose(task.dropout, 0.4)
    assert Table.recipe.batch_size == 256
