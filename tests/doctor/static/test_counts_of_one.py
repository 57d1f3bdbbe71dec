"""Runs that take `n` for neither 1 nor more than 1 do not exist, where `n` counts something."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text
from trueloop.doctor.static.interpreter.joined_conditions import limited

PROGRAM = """
import torch
from torch import nn


class Trainer:
    def __init__(self, net, optimizer, options):
        assert options.accumulate > 0
        self.net, self.optimizer, self.accumulate = net, optimizer, options.accumulate

    def batches(self, loader):
        gathered = []
        for batch in loader:
            gathered.append(batch)
            if len(gathered) == self.accumulate:
                yield gathered
                gathered = []

    def train(self, loader):
        for several in self.batches(loader):
            if self.accumulate > 1:
                self.optimizer.zero_grad()
            for x, y in several:
                if self.accumulate == 1:
                    self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.net(x), y) / len(several)
                loss.backward()
                if self.accumulate == 1:
                    self.optimizer.step()
            if self.accumulate > 1:
                self.optimizer.step()


def main(options):
    net = nn.Linear(4, 4)
    optimizer = torch.optim.Adam(net.parameters())
    data = [(torch.randn(8, 4), torch.randn(8, 4)) for _ in range(16)]
    for epoch in range(3):
        Trainer(net, optimizer, options).train(data)


main(options)
"""


def codes(*without: int) -> list[str]:
    """Of the program without some of its steps."""
    parts = PROGRAM.split("self.optimizer.step()")
    steps = ["pass" if number in without else "self.optimizer.step()" for number in (0, 1)] + [""]
    program = "".join(part + step for part, step in zip(parts, steps, strict=True))
    return [each.code for each in check_text(program, "train.py").findings]


def test_one_step_in_any_case() -> None:
    assert codes() == []


def test_no_step_at_all() -> None:
    assert codes(0, 1) == ["TL106"]


@pytest.mark.parametrize(
    ("asked", "decided", "outcome"),
    [
        ("n > 1", {"n == 1": False}, True),
        ("n >= 2", {"n == 1": False}, True),
        ("n < 2", {"n == 1": False}, False),
        ("n <= 1", {"n == 1": False}, False),
        ("n > 0", {"n == 0": False}, True),
        ("n > 1", {"n == 0": False}, None),
        ("n > 2", {"n == 1": False}, None),
        ("n > 1", {"n == 2": False}, None),
        ("n > 1", {"m == 1": False}, None),
        ("n == 1", {"n > 0": True, "n > 1": False}, True),
        ("n == 1", {"n > 1": False}, None),
        ("n == 1", {"n > 0": True}, None),
        ("n == 2", {"n > 0": True, "n > 1": False}, None),
    ],
)
def test_conclusions_from_comparisons_with_one(
    asked: str, decided: dict[str, bool], outcome: bool | None
) -> None:
    assert limited(asked, {}, decided) is outcome
