"""A meter that each epoch empties, for more epochs than the reader looks at one by one (TL204)."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(96, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)


class Scores:
    def __init__(self):
        self.outputs, self.targets, self.total, self.count = [], [], 0.0, 0

    def update(self, outputs, targets, loss):
        self.outputs.append(outputs)
        self.targets.append(targets)
        self.total += loss
        self.count += 1

    def refresh(self):
        {refresh}


def report(scores):
    print("after the epoch", scores.count, "batches of", len(scores.targets), "targets")
    scores.refresh()


def run(scores, phases):
    for phase in range(phases):
        for epoch in range(5):
            for inputs, targets in loader:
                optimizer.zero_grad()
                outputs = model(inputs)
                loss = nn.functional.mse_loss(outputs, targets)
                loss.backward()
                optimizer.step()
                scores.update(outputs, targets, loss)
            report(scores)


run(Scores(), 2)
"""


@pytest.mark.parametrize(
    ("refresh", "severities"),
    [
        ("self.outputs, self.targets = [], []; self.total = 0.0; self.count = 0", {"advice"}),
        ("self.outputs = []; self.targets = []; self.total = self.count = 0", {"advice"}),
        ("self.outputs.clear(); self.targets.clear(); self.total = self.count = 0", {"advice"}),
        ("self.targets = []; self.count = 0; print('one more epoch', self.count)", {"warning"}),
        ("self.outputs = []; self.targets = []; self.count = 0", {"warning"}),  # total stays
    ],
)
def test_what_an_epoch_empties_does_not_stay(refresh: str, severities: set[str]) -> None:
    found = check_text(PROGRAM.format(refresh=refresh), "train.py").findings
    assert {each.severity for each in found if each.code == "TL204"} == severities
