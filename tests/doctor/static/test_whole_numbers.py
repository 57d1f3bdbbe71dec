"""Whole numbers and truth values have no graph, also where a module of the program's own counts
them (TL204)."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(96, 6)
loader = DataLoader(TensorDataset(x, x[:, 0] > 0), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Metric(nn.Module):
    def forward(self, scores, labels):
        {counted}


metric = Metric()
for epoch in range(3):
    model.train()
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels.long()).backward()
        optimizer.step()
    model.eval()
    counts = []
    for inputs, labels in loader:
        counts.append(metric(model(inputs), labels))
    print(sum(counts))
"""


def codes(counted: str) -> list[str]:
    return [each.code for each in check_text(PROGRAM.format(counted=counted), "train.py").findings]


@pytest.mark.parametrize(
    "counted",
    [
        "return (scores > 0).sum()",
        "return (scores > 0) & labels[:, None]",
        "return (labels[:, None] & (scores > 0)).sum()",
        "return (~(scores > 0)).long().sum()",
        "return torch.triu(scores > 0).long().sum()",
        "return torch.stack([(scores > 0).sum(), (scores > 1).long().sum()])",
        "return scores.argmax(-1)",
        "return (scores.argmax(-1) == labels).sum()",
        "return torch.bincount(scores.argmax(-1), minlength=2)",
        "return 2 * (scores > 0).sum()",
    ],
)
def test_what_a_metric_counts_has_no_graph(counted: str) -> None:
    assert codes(counted) == ["TL203"]  # a graph for nothing, which nobody keeps


@pytest.mark.parametrize(
    "counted",
    [
        "return scores.sum()",
        "return (scores * (scores > 0)).sum()",
        "return torch.stack([scores.sum(), scores.mean()])",
        "return torch.bincount(scores.argmax(-1), weights=scores[:, 0])",
        "return scores.double().sum() / (scores > 0).sum()",
    ],
)
def test_what_a_metric_computes_of_the_scores_has_one(counted: str) -> None:
    assert codes(counted) == ["TL204"]
