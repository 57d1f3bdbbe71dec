"""A program that predicts, whose network returns classes: their scores were recorded (TL203)."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 9))

    def forward(self, inputs):
        return {returned}


net = Net()
net.load_state_dict(torch.load("net.pt"))
net.eval()
for inputs in DataLoader(torch.load("inputs.pt"), batch_size=64):
    {graph}
        print(net(inputs).tolist())
"""


@pytest.mark.parametrize("returned", ["self.body(inputs)", "self.body(inputs).argmax(-1)"])
@pytest.mark.parametrize(
    ("graph", "expected"), [("if True:", True), ("with torch.no_grad():", False)]
)
def test_a_prediction_is_recorded(returned: str, graph: str, expected: bool) -> None:
    found = check_text(PROGRAM.format(returned=returned, graph=graph), "predict.py").findings
    assert ("TL203" in [each.code for each in found]) is expected
