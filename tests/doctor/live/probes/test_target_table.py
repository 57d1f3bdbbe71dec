"""Columns that determine the target, against brute force, and targets that are no numbers."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings, strategies as st

from trueloop.doctor.live.probes.target_table import TargetTable


def marks(x: torch.Tensor, y: torch.Tensor) -> list[int]:
    """Columns with one value in a class, which the other class does not have and varies in."""
    found = []
    for column in range(x.shape[1]):
        values = [set(x[y == label, column].tolist()) for label in (0, 1)]
        one, other = sorted(values, key=len)
        if len(one) == 1 and len(other) >= 10 and one.isdisjoint(other):
            found.append(column)
    return found


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.lists(st.sampled_from("mark near noise".split()), min_size=2))
def test_marked_columns_are_those_of_brute_force(seed: int, kinds: list[str]) -> None:
    random = torch.Generator().manual_seed(seed)
    y = (torch.rand(400, generator=random) < 0.5).long()
    columns = []
    for kind in kinds:
        days = torch.randint(0 if kind == "near" else 1, 60, (400,), generator=random).float()
        marked = torch.where(y == 1, days, torch.zeros(400))
        columns.append(torch.randn(400, generator=random) if kind == "noise" else marked)
    x = torch.stack(columns, dim=1)
    table = TargetTable()
    for rows in torch.arange(400).split(50):
        table.see(x[rows], y[rows])
    assert table.columns() == marks(x, y)


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_a_target_that_is_no_number_is_no_class(odd: float) -> None:
    x, y = torch.randn(300, 3), torch.randint(0, 2, (300,)).float()
    y[7] = odd
    table = TargetTable()
    table.see(x, y)
    assert table.columns() == []
    assert table.closed
