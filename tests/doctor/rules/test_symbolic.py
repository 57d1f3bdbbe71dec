"""Quantities that are known only by what they are made of."""

from __future__ import annotations

import pytest

from trueloop.doctor.model.things import Size
from trueloop.doctor.rules.shared import symbolic


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("(args.epochs * len(loader))", "(len(loader) * args.epochs)"),
        ("((1 + args.epochs) - 1)", "args.epochs"),
        ("((2 * (n + 3)) - 6)", "(n * 2)"),
        ("((len(loader) // 4) * epochs)", "(epochs * (len(loader) // 4))"),
        ("(-(-n))", "n"),
        ("(n / 2)", "(0.5 * n)"),
        (12, "(3 * 4)"),
        ("(n - n)", 0),
        ("max(1, (n * len(loader)))", "(len(loader) * n)"),
        ("(max(n, 0) * 2)", "(2 * n)"),
    ],
)
def test_same(left: Size, right: Size) -> None:
    assert symbolic.same(symbolic.parse(left), symbolic.parse(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("args.epochs", "args.batches"),
        ("(n * 2)", "n"),
        ("(n // 2)", "(n / 2)"),
        (None, None),
        ("max(2, n)", "n"),
        ("max(1, n, m)", "n"),
        ("max(1, n)[0]", "n"),
        ("f(a, b) + 1)", "f(a"),
    ],
)
def test_not_certainly_the_same(left: Size, right: Size) -> None:
    assert not symbolic.same(symbolic.parse(left), symbolic.parse(right))


def test_numbers_and_ratios() -> None:
    assert symbolic.number(symbolic.parse("(3 * (2 + 2))")) == 12
    assert symbolic.number(symbolic.parse("(n * 2)")) is None
    assert symbolic.number(symbolic.parse(None)) is None
    assert symbolic.ratio(symbolic.parse("(2 * (n * m))"), symbolic.parse("(m * n)")) == 2
    assert symbolic.ratio(symbolic.parse("(n + 1)"), symbolic.parse("(n + 2)")) is None
    assert symbolic.ratio(symbolic.parse("n"), symbolic.parse("m")) is None


def test_quotient_is_what_the_reader_writes() -> None:
    left, right = symbolic.parse("len(loader)"), symbolic.parse("args.accumulate")
    assert left is not None
    assert right is not None
    read = symbolic.parse("(len(loader) // args.accumulate)")
    assert symbolic.same(symbolic.quotient(left, right), read)
    assert symbolic.quotient({(): 17.0}, {(): 4.0}) == {(): 4.0}


@pytest.mark.parametrize(
    ("text", "batches", "epochs"),
    [
        ("len(train_loader)", True, False),
        ("(args.epochs * len(train_dl))", True, False),
        ("(args.steps_per_epoch * args.epochs)", True, False),
        ("args.epochs", False, True),
        ("(args.epochs // 2)", False, True),
        ("config['max_epochs']", False, True),
        ("(32 * args.epochs)", False, False),
        ("max(1, (args.epochs * <20.4.0>))", False, False),
        ("max(1, args.epochs)", False, True),
        ("args.max_steps", False, False),
        ("args.warmup_epochs", False, False),
        ("len(milestones)", False, False),
        (200, False, False),
    ],
)
def test_what_a_name_counts(text: Size, batches: bool, epochs: bool) -> None:
    quantity = symbolic.parse(text)
    assert symbolic.counts_batches(quantity) is batches
    assert symbolic.counts_epochs(quantity) is epochs


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (200, [{(): 200.0}]),
        ("args.epochs", [{("args.epochs",): 1.0}]),
        ("range(1, (1 + epochs), 1)", [{("epochs",): 1.0}]),
        ("range(first, (200 + first), 1)", [{(): 200.0}, {(): 200.0, ("first",): 1.0}]),
        ("range(0, n, k)", []),
        (None, []),
    ],
)
def test_turns_of_a_range(turns: Size, expected: list[symbolic.Sum]) -> None:
    assert symbolic.range_of(turns) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (4, "4"),
        ("(args.window)", "args.window"),
        ("((envs * steps) // parts) / small", "((envs * steps) // parts) / small"),
        ("((a + b) * (c))", "(a + b) * (c)"),
        ("(a) * (b)", "(a) * (b)"),
        (None, "None"),
        ("", "N"),
    ],
)
def test_a_quantity_as_it_is_written(size: Size, expected: str) -> None:
    assert symbolic.spelled(size) == expected
