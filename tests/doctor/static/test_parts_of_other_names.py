"""TL807 in source is a warning only where it is certain that no key of the file fits."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import torch
from somewhere import extend
from torch import nn


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(4, 8), nn.Linear(8, 4)


class Large(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 2)


torch.save(SAVED.state_dict(), "model.pt")
model = MADE
model.load_state_dict(torch.load("model.pt"), strict=False)
"""


@pytest.mark.parametrize(
    ("saved", "made", "severity"),
    [
        ("Small()", "Large()", "warning"),
        ("Large()", "Large()", "advice"),
        ("Small()", "nn.Sequential(Large())", "warning"),
        ("Small()", "nn.DataParallel(Large())", "advice"),
        ("nn.DataParallel(Small())", "Large()", "advice"),
        ("Small()", "extend(Large())", "advice"),
        ("extend(Small())", "Large()", "advice"),
        ("Large()", "Large(); extend(model)", "advice"),
    ],
)
def test_severity(saved: str, made: str, severity: str) -> None:
    program = PROGRAM.replace("SAVED", saved).replace("MADE", made)
    found = [each for each in check_text(program, "load.py").findings if each.code == "TL807"]
    assert [str(each.severity) for each in found] == [severity]
