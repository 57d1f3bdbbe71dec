"""Gradients that are cleared by hand between `backward` and the step (TL101)."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_parameters_live import watched

PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)


def clear():
    CLEAR


for step in range(12):
    BEFORE
    nn.functional.mse_loss(net(torch.randn(8, 4)), torch.randn(8, 1)).backward()
    BETWEEN
    optimizer.step()
"""
CLEARINGS = {
    "to None": "for p in net.parameters(): p.grad = None",
    "of groups": "for g in optimizer.param_groups:\n        for p in g['params']: p.grad = None",
    "to zero": "for p in net.parameters():\n        if p.grad is not None: p.grad.zero_()",
    "of data": "for p in net.parameters():\n        if p.grad is not None: p.grad.data.zero_()",
    "times zero": "for p in net.parameters():\n        if p.grad is not None: p.grad.mul_(0)",
}


def codes(clear: str, before: str, between: str, folder: Path) -> list[tuple[str, int]]:
    program = PROGRAM.replace("CLEAR", clear)
    program = program.replace("BEFORE", before).replace("BETWEEN", between)
    lines = program.splitlines()
    found = watched(program, folder)
    assert all("optimizer.step()" in lines[each.place.line - 1] for each in found)
    return [(each.code, each.count) for each in found]


@pytest.mark.parametrize("how", CLEARINGS)
def test_cleared_by_hand_before_the_step(how: str, tmp_path: Path) -> None:
    found = codes(CLEARINGS[how], "optimizer.zero_grad()", "clear()", tmp_path)
    assert [code for code, _ in found] == ["TL101"]


@pytest.mark.parametrize("how", CLEARINGS)
def test_cleared_by_hand_where_it_belongs(how: str, tmp_path: Path) -> None:
    assert codes(CLEARINGS[how], "clear()", "pass", tmp_path) == []


def test_gradients_put_back_before_the_step(tmp_path: Path) -> None:
    """Gathered in lists of their own, as privacy and surgery on gradients do."""
    between = (
        "kept = [p.grad.clone() for p in net.parameters()]; clear()\n"
        "    for p, g in zip(net.parameters(), kept): p.grad = g"
    )
    assert codes(CLEARINGS["to None"], "clear()", between, tmp_path) == []


def test_steps_inside_of_backward(tmp_path: Path) -> None:
    """Each parameter has an optimizer that steps and clears as soon as its gradient is there."""
    clear = (
        "def hook(p):\n"
        "        of[p].step(); p.grad = None\n"
        "    for p in net.parameters():\n"
        "        of[p] = torch.optim.SGD([p], 0.01)\n"
        "        p.register_post_accumulate_grad_hook(hook)"
    )
    before = "if not step: of = {}; clear()"
    assert codes(clear, before, "pass", tmp_path) == []


def test_a_second_optimizer_has_applied_them(tmp_path: Path) -> None:
    before = "if not step: other = torch.optim.SGD(net.parameters(), 0.01)"
    between = "other.step(); clear()"
    found = codes(CLEARINGS["to None"], before, between, tmp_path)
    assert "TL101" not in [code for code, _ in found]


def test_a_batch_that_is_skipped(tmp_path: Path) -> None:
    between = "if step % 4 == 3: clear()"
    assert codes(CLEARINGS["to None"], "clear()", between, tmp_path) == []
