"""Scores of single samples, added up or collected over all batches, are no means of batches (TL709,
TL720)."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(90, 3, 8, 8), torch.randn(90, 3, 8, 8))
loader = DataLoader(data, batch_size=4)
net = nn.Conv2d(3, 3, 3, padding=1)
mse = nn.MSELoss()


class Meter:
    def __init__(self):
        self.sum = self.count = self.avg = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count


@torch.no_grad()
def evaluate():
    net.eval()
    total, found, meter, scores = 0.0, [], Meter(), {}
    for x, y in loader:
        out = net(x)
        BODY
    return RESULT


print(evaluate())
"""


def codes(body: str, result: str) -> list[str]:
    text = PROGRAM.replace("BODY", body).replace("RESULT", result)
    return [each.code for each in check_text(text, "<text>", strict=True).findings]


EACH = "for p, t in zip(out, y):\n            "


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (f"{EACH}total += mse(p, t).item()", "total / len(data)"),
        (f"{EACH}total += float(mse(p, t))", "total / len(data)"),
        (f"{EACH}found += [mse(p, t).numpy()]", "sum(found) / len(found)"),
        (f"{EACH}meter.update(mse(p, t).item())", "meter.avg"),
        (f"{EACH}found.append(mse(p, t).item())", "np.mean(found)"),
        (f"{EACH}scores[len(scores)] = mse(p, t).item()", "sum(scores.values()) / len(scores)"),
        ("total += sum(mse(p, t) for p, t in zip(out, y)).item()", "total / len(data)"),
        ("found += [mse(p, t) for p, t in zip(out, y)]", "torch.stack(found).mean().item()"),
        (
            "found.append(torch.stack([mse(p, t) for p, t in zip(out, y)]))",
            "torch.cat(found).mean().item()",
        ),
        (
            "for i in range(len(x)):\n            found.append(mse(out[i], y[i]))",
            "torch.stack(found).mean()",
        ),
        (
            "for p, t in zip(out.split(1), y.split(1)):\n            found += [float(mse(p, t))]",
            "sum(found) / len(found)",
        ),
        ("total += ((out - y) ** 2).mean(dim=(1, 2, 3)).sum().item()", "total / len(data)"),
        ("found.extend(((out - y) ** 2).mean(dim=(1, 2, 3)).tolist())", "np.mean(found)"),
    ],
)
def test_scores_of_samples(body: str, result: str) -> None:
    assert codes(body, result) == []


@pytest.mark.parametrize(
    ("body", "result", "code"),
    [
        ("total += mse(out, y).item()", "total / len(data)", "TL720"),
        ("total += (mse(out, y) + (out - y).abs().mean()).item()", "total / len(data)", "TL720"),
        ("meter.update(mse(out, y).item())", "meter.avg", "TL709"),
        ("found.append(mse(out, y).item())", "np.mean(found)", "TL709"),
        ("found.append(mse(out, y))", "torch.stack(found).mean().item()", "TL709"),
        ("total += mse(out, y).item()", "total / len(loader)", "TL709"),
    ],
)
def test_means_of_batches(body: str, result: str, code: str) -> None:
    assert codes(body, result) == [code]
