"""`a and f()` and `a or f()` as statements are the `if` that they stand for."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

SAVES = """
import os
import torch
import torch.distributed as dist
from torch import nn
dist.init_process_group("nccl")
rank, path = dist.get_rank(), "model.pt"
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
{statement}
"""
STEPS = """
import torch
from torch import nn
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(64, 3), torch.randn(64, 1)
for i in range(40):
    i % 4 or optimizer.zero_grad()
    (nn.functional.mse_loss(net(x), y) / {size}).backward()
    {statement}
"""


def codes(program: str) -> list[str]:
    return [each.code for each in check_text(program, "train.py").findings]


@pytest.mark.parametrize(
    "condition",
    ["rank == 0 and", "not rank and", "rank or", "rank != 0 or", "path and rank == 0 and"],
)
def test_one_rank_saves(condition: str) -> None:
    save = "torch.save(model.module.state_dict(), path)"
    assert codes(SAVES.format(statement=f"{condition} {save}")) == []
    assert codes(SAVES.format(statement=f"path and {save}")) == ["TL902"]


def test_steps_once_in_a_window() -> None:
    assert codes(STEPS.format(size=4, statement="(i + 1) % 4 == 0 and optimizer.step()")) == []
    assert codes(STEPS.format(size=4, statement="(i + 1) % 4 or optimizer.step()")) == []
    found = codes(STEPS.format(size=4, statement="i < 0 and optimizer.step()"))
    assert found == ["TL106"]
