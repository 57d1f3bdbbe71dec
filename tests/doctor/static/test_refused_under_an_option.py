"""A call that Python refuses, in the branch of one option: what it would make never exists."""

from __future__ import annotations

from trueloop.doctor.static import check_text

PROGRAM = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 3)
loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=16, shuffle=True)


class Plain(nn.Module):
    def __init__(self, width{more}):
        super().__init__()
        self.layer = nn.Linear(width, 2)

    def forward(self, inputs):
        return self.layer(inputs)


def train(epochs):
    for epoch in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.nll_loss(model(inputs), labels).backward()
            optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--plain", action="store_true")
    sampler = torch.Generator()
    if parser.parse_args().plain:
        model = Plain(width=3, sampler=sampler)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train(3)
"""


def codes(more: str) -> list[str]:
    found = check_text(PROGRAM.format(more=more), "train.py").findings
    return [each.code for each in found if each.severity == "error"]


def test_a_network_that_cannot_be_made_is_not_trained() -> None:
    assert codes("") == []


def test_a_network_that_can_be_made_is_reported() -> None:
    assert codes(", sampler") == ["TL403"]
