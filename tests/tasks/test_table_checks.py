"""What is said about a table before it trains, and of which tables nothing is said."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from trueloop.cli.parser import words_of
from trueloop.tasks.data_findings import DataFinding, rare_class
from trueloop.tasks.table import Table
from trueloop.tasks.table.command_words import option_value

Columns = dict[str, object]
Findings = Callable[..., list[DataFinding]]
RNG = np.random.default_rng


@pytest.fixture
def findings(tmp_path: Path) -> Findings:
    """Writes a table of columns and returns what the task finds in it, but for the way that it is
    divided: test_table_ordered_split.py."""

    def read(columns: Columns, target: str = "y", seed: int = 0, **options: object):
        path = tmp_path / "table.csv"
        pl.DataFrame(columns).write_csv(path)
        task = Table(Table.Options(target=target, **options), data=path, seed=seed)
        return [each for each in task.splits().findings if each.code != "TL718"]

    return read


def numbers(rows: int, seed: int = 0) -> Columns:
    """Three columns of noise and a target that they tell little about."""
    x = RNG(seed).standard_normal((rows, 3))
    y = (x[:, 0] + x[:, 1] + RNG(seed + 1).standard_normal(rows) > 0).astype(int)
    return {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y}


def codes(found: list[DataFinding]) -> list[str]:
    return [each.code for each in found]


# ---------------------------------------------------------------------- nothing to say


@pytest.mark.parametrize("seed", range(3))
def test_noise(findings: Findings, seed: int) -> None:
    assert findings(numbers(400, seed), seed=seed) == []


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "diabetes"])
def test_tables_of_scikit_learn(findings: Findings, name: str) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    data = getattr(datasets, f"load_{name}")()
    columns = {str(k): data.data[:, j] for j, k in enumerate(data.feature_names)}
    for seed in range(3):
        assert findings({**columns, "y": data.target}, seed=seed) == []


@pytest.mark.parametrize("maker", ["moons", "circles", "classification", "regression", "friedman1"])
def test_made_up_tables_of_scikit_learn(findings: Findings, maker: str) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    x, y = getattr(datasets, f"make_{maker}")(1000, random_state=0)
    assert findings({**{f"x{k}": x[:, k] for k in range(x.shape[1])}, "y": y}) == []


def test_one_hot_columns_that_are_rare_are_no_duplicates(findings: Findings) -> None:
    """Two flags that are each set in one and the same row are equal by chance."""
    flags = {f"f{k}": [int(row == 7) for row in range(400)] for k in range(3)}
    kept = {f"f{k}": [int(row % 50 == 7) for row in range(400)] for k in range(1)}
    assert "TL715" not in codes(findings({**numbers(400), **flags, **kept}))


def test_columns_whose_rows_all_differ_are_no_recodings(findings: Findings) -> None:
    found = findings({**numbers(400), "d": RNG(9).permutation(400) * 7})
    assert found == []


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(RNG(3).permutation(10_000)[:400], id="whole numbers"),
        pytest.param(np.arange(400) * 2.5, id="in order"),
    ],
)
def test_numbers_that_differ_are_no_identifiers(findings: Findings, column: np.ndarray) -> None:
    assert findings({**numbers(400), "income": column}) == []


def test_a_year_is_no_row_number(findings: Findings) -> None:
    assert findings({**numbers(400), "year": np.arange(1600, 2000)}) == []


def test_a_few_twins(findings: Findings) -> None:
    table = numbers(400)
    twins = {name: [*np.asarray(column), *np.asarray(column)[:2]] for name, column in table.items()}
    assert findings(twins) == []


def test_a_single_column_may_tell_the_target(findings: Findings) -> None:
    y = RNG(0).integers(0, 2, 200)
    assert findings({"x": y + 0.25 * RNG(1).random(200), "y": y}) == []


def test_a_strong_measurement_is_advice_at_most(findings: Findings) -> None:
    table = numbers(3000)
    strong = 5.4 * np.asarray(table["y"]) + RNG(5).standard_normal(3000)
    (found,) = findings({**table, "strong": strong})
    assert (found.code, found.severity) == ("TL710", "advice")


# ---------------------------------------------------------------------- leaks


def test_the_target_in_words(findings: Findings) -> None:
    table = numbers(400)
    words = ["yes" if y else "no" for y in np.asarray(table["y"])]
    (found,) = findings({**table, "alive": words})
    assert (found.code, found.severity, found.subject) == ("TL710", "error", "column 'alive'")
    assert "100% of held-out rows (majority class: " in found.message
    assert found.fix.startswith("Write --drop alive")
    assert findings({**table, "alive": words}, drop=["alive"]) == []


def test_a_threshold_and_a_gap(findings: Findings) -> None:
    table = numbers(800)
    y = np.asarray(table["y"])
    score = [v + 0.5 * r for v, r in zip(y, RNG(3).random(800), strict=True)]
    paid = [f"{r:.3f}" if v else "" for v, r in zip(y, RNG(4).random(800), strict=True)]
    found = findings({**table, "score": score, "paid": paid})
    assert [(each.code, each.subject) for each in found] == [
        ("TL710", "column 'score'"),
        ("TL710", "column 'paid'"),
    ]


def test_a_rare_class_is_not_told_by_its_rarity(findings: Findings) -> None:
    table = numbers(4000) | {"y": (RNG(7).random(4000) < 0.005).astype(int)}
    assert codes(findings(table)) == ["TL716"]


def test_several_classes_in_other_words(findings: Findings) -> None:
    y = RNG(0).integers(0, 5, 600)
    zone = [f"zone {(3 * v) % 5}" for v in y]
    found = findings({**numbers(600), "y": [f"c{v}" for v in y], "zone": zone})
    assert codes(found) == ["TL710"]


def test_a_number_in_another_unit(findings: Findings) -> None:
    euro = RNG(0).lognormal(3, 1, 600)
    table = {**numbers(600), "y": euro, "cents": 100 * euro, "noisy": euro + RNG(1).random(600) * 9}
    (found,) = findings(table)
    assert (found.code, found.subject) == ("TL710", "column 'cents'")
    assert "R² is" in found.message


# ---------------------------------------------------------------------- rows


def copied(table: Columns, rows: int) -> Columns:
    return {
        name: [*np.asarray(column), *np.asarray(column)[:rows]] for name, column in table.items()
    }


def test_copies_are_counted(findings: Findings) -> None:
    (found,) = findings(copied(numbers(400), 200))
    assert (found.code, found.severity) == ("TL705", "warning")
    assert found.subject == "validation and test rows"
    assert "of the 90 validation rows" in found.message


def test_an_identifier_does_not_hide_them(findings: Findings) -> None:
    table = copied(numbers(400), 200)
    found = findings({**table, "id": np.arange(600)})
    assert codes(found) == ["TL705", "TL717"]


def test_rows_of_few_values_are_equal_by_chance(findings: Findings) -> None:
    draws = RNG(0).integers(0, 3, (400, 3))
    y = RNG(1).integers(0, 2, 400)
    (found,) = findings({"a": draws[:, 0], "b": draws[:, 1], "c": draws[:, 2], "y": y})
    assert (found.code, found.severity) == ("TL705", "advice")
    assert "by chance" in found.message


# ---------------------------------------------------------------------- columns


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("PassengerId", RNG(0).permutation(5000)[:400]),
        ("customer_id", RNG(1).permutation(5000)[:400]),
        ("n", np.arange(400)),
    ],
    ids=["PassengerId", "customer_id", "row number"],
)
def test_identifiers(findings: Findings, name: str, column: np.ndarray) -> None:
    (found,) = findings({**numbers(400), name: column})
    assert (found.code, found.severity, found.subject) == ("TL717", "warning", f"column {name!r}")
    assert found.fix == f"Write --drop {name}."


def test_constant_columns_and_dates(findings: Findings) -> None:
    (found,) = findings(
        {**numbers(400), "unit": ["kg"] * 400, "one": [1] * 400, "day": ["2024-03-01"] * 400}
    )
    assert (found.code, found.severity) == ("TL714", "advice")
    assert found.subject == "columns 'unit', 'one', 'day'"


def test_a_date_without_hours_is_not_constant(findings: Findings) -> None:
    days = [f"2024-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(400)]
    assert findings({**numbers(400), "day": days}) == []


def test_duplicates(findings: Findings) -> None:
    table = numbers(400)
    port = RNG(2).integers(0, 3, 400)
    found = findings(
        {
            **table,
            "fahrenheit": 32 + 1.8 * np.asarray(table["a"]),
            "debt": -np.asarray(table["b"]),
            "port": ["SQC"[k] for k in port],
            "town": [("Southampton", "Queenstown", "Cherbourg")[k] for k in port],
            "code": 10 * port,
        }
    )
    (each,) = found
    assert (each.code, each.severity) == ("TL715", "advice")
    for pair in ("'a', 'fahrenheit'", "'b', 'debt'", "'code', 'port', 'town'"):
        assert pair in each.message
    assert each.fix.startswith("Write --drop fahrenheit,debt,port,town:")


def test_columns_that_would_break_arithmetic(findings: Findings) -> None:
    """Huge numbers, gaps almost everywhere, one value in one half, a name that looks like a part
    of a date."""
    rows = 200
    odd = {
        "huge": np.where(np.arange(rows) % 2, 1e300, -1e300),
        "gaps": [1.5 if k == 3 else None for k in range(rows)],
        "late": (np.arange(rows) > 190).astype(int),
        "day": [f"2024-01-{1 + k % 28:02}" for k in range(rows)],
        "day: hour": RNG(0).random(rows),
    }
    for target in (RNG(1).integers(0, 2, rows), RNG(2).random(rows) * 1e30):
        assert findings({**numbers(rows), **odd, "y": target}) == []


def test_rare_classes() -> None:
    assert rare_class({"a": 60, "b": 40}) == []
    assert rare_class({"a": 89, "b": 11}) == []
    assert rare_class({str(k): 100 - 8 * k for k in range(10)}) == []
    assert rare_class({"a": 5}) == []
    absent, found = rare_class({"no": 970, "yes": 30, "never": 0})
    assert (absent.subject, absent.severity) == ("class 'never'", "warning")
    assert (found.code, found.subject) == ("TL716", "class 'yes'")
    assert "30 of the 1,000" in found.message
    assert "97.0%" in found.message


def test_it_is_fast(findings: Findings) -> None:
    rows = 100_000
    x = RNG(0).standard_normal((rows, 20)).round(4)
    y = (x[:, 0] + RNG(1).standard_normal(rows) > 0).astype(int)
    from trueloop.tasks.table import checks

    taken: list[float] = []
    whole = checks.TableChecks.findings

    def timed(self: checks.TableChecks) -> list[DataFinding]:
        began = time.thread_time()
        found = whole(self)
        taken.append(time.thread_time() - began)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks.TableChecks, "findings", timed)
        assert findings({**{f"x{k}": x[:, k] for k in range(20)}, "y": y}) == []
    assert taken[0] < 1.0


def test_columns_are_named_as_they_are_typed_in_a_shell(refusal, table_file):
    """What a message says to write is what the command line reads."""
    names = ["a b", "Price, total", 'the "new" one', "it's", "plain"]
    typed = option_value(names)
    assert option_value(["plain", "more"]) == "plain,more"
    assert words_of(shlex.split(typed)[0]) == names
    path = table_file('"Price, total",x,y', [f"{k},{k % 3},{k % 2}" for k in range(40)])
    said = "a name with a comma needs quotation marks: write --drop '\"Price, total\"'"
    refusal(Table(Table.Options(target="y", drop=["Price", "total"]), data=path, seed=0), said)
