"""Gradients that are cleared by hand, in the ways in which people write it (TL101, TL102)."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(64, 4), torch.randn(64, 2))
loader = DataLoader(data, batch_size=8, shuffle=True)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)


class Steps:
    def __init__(self):
        self.opt = optimizer

    def clear(self):
        for group in self.opt.param_groups:
            for p in group["params"]:
                p.grad = None


for epoch in range(3):
    for x, y in loader:
        BEFORE
        nn.functional.mse_loss(net(x), y).backward()
        AFTER
        optimizer.step()
"""
PARAMETERS = "for p in net.parameters(): "
GROUPS = "for g in optimizer.param_groups:\n            for p in g['params']: "
WHOLE = [
    PARAMETERS + "p.grad = None",
    PARAMETERS + "p.grad.zero_()",
    PARAMETERS + "p.grad.data.zero_()",
    GROUPS + "p.grad = None",
    GROUPS + "p.grad.zero_()",
    "Steps().clear()",
]
OTHER = [
    PARAMETERS + "p.grad.detach().zero_()",
    PARAMETERS + "p.grad.detach_().zero_()",
    PARAMETERS + "p.grad.data = torch.zeros_like(p)",
    PARAMETERS + "p.grad.data.fill_(0)",
    PARAMETERS + "p.grad.data[:] = 0",
    PARAMETERS + "p.grad.data *= 0",
    PARAMETERS + "p.grad.copy_(torch.zeros_like(p))",
]


def codes(before: str, after: str) -> list[str]:
    program = PROGRAM.replace("BEFORE", before).replace("AFTER", after)
    return [each.code for each in check_text(program, "train.py").findings]


@pytest.mark.parametrize("clearing", [*WHOLE, *OTHER])
def test_cleared_in_each_batch(clearing: str) -> None:
    guarded = clearing.replace(": p.", ":\n                if p.grad is not None: p.")
    assert codes(clearing, "pass") == codes(guarded, "pass") == []


@pytest.mark.parametrize("clearing", WHOLE)
def test_cleared_between_backward_and_step(clearing: str) -> None:
    assert codes("optimizer.zero_grad()", clearing) == ["TL101"]


def test_a_part_of_the_groups_is_cleared() -> None:
    chosen = GROUPS.replace("param_groups", "param_groups[1:]") + "p.grad = None"
    assert codes("optimizer.zero_grad()", chosen) == []


def test_never_cleared() -> None:
    assert codes("pass", PARAMETERS + "p.grad.detach()") == ["TL102"]
