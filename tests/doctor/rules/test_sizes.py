"""Quantities that are known only by what they are made of."""

from __future__ import annotations

import pytest

from trueloop.doctor.rules import sizes
from trueloop.doctor.things import Size


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
    ],
)
def test_same(left: Size, right: Size) -> None:
    assert sizes.same(sizes.parse(left), sizes.parse(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("args.epochs", "args.batches"),
        ("(n * 2)", "n"),
        ("(n // 2)", "(n / 2)"),
        (None, None),
        ("f(a, b) + 1)", "f(a"),
    ],
)
def test_not_certainly_the_same(left: Size, right: Size) -> None:
    assert not sizes.same(sizes.parse(left), sizes.parse(right))


def test_numbers_and_ratios() -> None:
    assert sizes.number(sizes.parse("(3 * (2 + 2))")) == 12
    assert sizes.number(sizes.parse("(n * 2)")) is None
    assert sizes.number(sizes.parse(None)) is None
    assert sizes.ratio(sizes.parse("(2 * (n * m))"), sizes.parse("(m * n)")) == 2
    assert sizes.ratio(sizes.parse("(n + 1)"), sizes.parse("(n + 2)")) is None
    assert sizes.ratio(sizes.parse("n"), sizes.parse("m")) is None


def test_quotient_is_what_the_reader_writes() -> None:
    left, right = sizes.parse("len(loader)"), sizes.parse("args.accumulate")
    assert left is not None
    assert right is not None
    read = sizes.parse("(len(loader) // args.accumulate)")
    assert sizes.same(sizes.quotient(left, right), read)
    assert sizes.quotient({(): 17.0}, {(): 4.0}) == {(): 4.0}


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
        ("args.max_steps", False, False),
        ("args.warmup_epochs", False, False),
        ("len(milestones)", False, False),
        (200, False, False),
    ],
)
def test_what_a_name_counts(text: Size, batches: bool, epochs: bool) -> None:
    quantity = sizes.parse(text)
    assert sizes.counts_batches(quantity) is batches
    assert sizes.counts_epochs(quantity) is epochs


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
def test_turns_of_a_range(turns: Size, expected: list[sizes.Sum]) -> None:
    assert sizes.range_of(turns) == expected
