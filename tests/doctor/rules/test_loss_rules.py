"""The rules on losses, where a whole program of the corpus would be too long for the question."""

from __future__ import annotations

import textwrap

import pytest

from trueloop.doctor.model.findings import Finding
from trueloop.doctor.static import check_text

HEAD = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchvision import models
data = TensorDataset(torch.randn(64, 4), torch.randint(0, 3, (64,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = nn.Linear(4, 3)
other = nn.Linear(4, 3)
"""


def findings(body: str) -> list[Finding]:
    text = HEAD + textwrap.dedent(body)
    found = check_text(text, "<text>", strict=True).findings
    return [each for each in found if each.code.startswith("TL4")]


def codes(body: str) -> list[tuple[str, str]]:
    return [(each.code, each.severity) for each in findings(body)]


def of_batch(*lines: str) -> str:
    """A loop over the batches with these lines in it."""
    return "for x, y in loader:\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    "line",
    [
        "F.cross_entropy(torch.softmax(model(x), 1), y)",
        "F.cross_entropy(model(x).softmax(dim=-1).float().view(-1, 3), y)",
        "F.cross_entropy(input=nn.Softmax(dim=1)(model(x)), target=y)",
        "F.cross_entropy(torch.sigmoid(model(x)), y)",
        "F.cross_entropy(F.softmax(model(x), dim=1)[y >= 0], y)",
    ],
)
def test_probabilities_into_cross_entropy(line: str) -> None:
    assert codes(of_batch(line)) == [("TL401", "error")]


@pytest.mark.parametrize(
    "line",
    [
        "F.cross_entropy(model(x), y)",
        "F.cross_entropy(torch.softmax(model(x), 1) * 10, y)",
        "F.cross_entropy(torch.softmax(model(x), 1).log(), y).detach()",
        "F.cross_entropy(model(torch.softmax(x, 1)), y)",
        "F.cross_entropy(model(x), torch.softmax(other(x), 1))",
        "F.nll_loss(torch.log(torch.softmax(model(x), 1)), y)",
        "F.nll_loss(torch.log(torch.softmax(model(x), 1) + 1e-8), y)",
        "F.nll_loss(model(x) - model(x).logsumexp(1, keepdim=True), y)",
        "F.binary_cross_entropy(torch.sigmoid(model(x)), y)",
        "F.kl_div(F.log_softmax(model(x), 1), F.softmax(other(x), 1), reduction='sum')",
    ],
)
def test_right_losses(line: str) -> None:
    assert [each for each in codes(of_batch(line)) if each[1] != "advice"] == []


def test_log_softmax_is_advice() -> None:
    assert codes(of_batch("F.cross_entropy(F.log_softmax(model(x), dim=1), y)")) == [
        ("TL401", "advice")
    ]


def test_one_softmax_is_one_finding() -> None:
    body = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)

        def forward(self, x):
            return F.softmax(self.fc(x), dim=1)

    net = Net()
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
    with torch.no_grad():
        for x, y in loader:
            loss = F.cross_entropy(net(x), y, reduction="sum")
    """
    (found,) = findings(body)
    assert found.code == "TL401"
    assert [each.label for each in found.related] == ["applies a softmax"]


def test_softmax_and_criterion_of_two_options() -> None:
    """Which options go together is not known: `--softmax` may go with `--loss nll` alone."""
    body = """
    import argparse
    parser = argparse.ArgumentParser()
    args = parser.parse_args()
    criterion = nn.CrossEntropyLoss() if args.loss == "ce" else nn.MSELoss()
    for x, y in loader:
        out = model(x)
        if args.softmax:
            out = out.softmax(dim=1)
        loss = criterion(out, y)
    """
    assert codes(body) == []


def test_log_softmax_on_another_path_speaks_for_nll() -> None:
    body = """
    import argparse
    args = argparse.ArgumentParser().parse_args()
    for x, y in loader:
        out = model(x)
        if args.normalise:
            out = F.log_softmax(out, dim=1)
        loss = F.nll_loss(out, y)
    """
    assert codes(body) == []


def test_head_of_a_network_of_torchvision() -> None:
    body = """
    net = models.resnet18(weights=None)
    net.fc = nn.Sequential(nn.Linear(512, 3), nn.Softmax(dim=1))
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
    plain = models.vgg16()
    plain.classifier = nn.Sequential(nn.Linear(10, 3))
    for x, y in loader:
        loss = F.nll_loss(plain(x), y)
    """
    assert codes(body) == [("TL401", "error"), ("TL403", "error")]


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("F.kl_div(F.log_softmax(model(x), 1), F.softmax(other(x), 1))", "advice"),
        (
            "F.kl_div(F.log_softmax(model(x), 1), F.log_softmax(other(x), 1), reduction='sum')",
            "warning",
        ),
        ("F.kl_div(F.softmax(model(x), 1), F.softmax(other(x), 1), reduction='none')", "warning"),
        ("nn.KLDivLoss(size_average=False)(F.log_softmax(model(x), 1), y)", ""),
        ("nn.KLDivLoss(log_target=True, reduction='batchmean')(x.log(), y.log_softmax(1))", ""),
    ],
)
def test_kl_div(line: str, severity: str) -> None:
    assert codes(of_batch(line)) == ([("TL405", severity)] if severity else [])


def test_reduction_that_is_an_argument_is_not_judged() -> None:
    body = """
    def kl(p, q, reduction="mean"):
        return F.kl_div(F.log_softmax(p, dim=1), F.softmax(q, dim=1), reduction=reduction)
    """
    assert codes(body) == []


@pytest.mark.parametrize(
    ("lines", "fires"),
    [
        (["F.nll_loss(F.log_softmax(model(x), dim=0), y)"], True),
        (["F.nll_loss(F.log_softmax(model(x), dim=1), y)"], False),
        (["F.nll_loss(F.log_softmax(model(x[0]), dim=0), y[0])"], False),
    ],
)
def test_softmax_over_the_batch(lines: list[str], fires: bool) -> None:
    assert codes(of_batch(*lines)) == ([("TL408", "warning")] if fires else [])


def test_batches_of_one_may_be_squeezed() -> None:
    body = """
    single = DataLoader(data, shuffle=True)
    for x, y in single:
        loss = F.nll_loss(F.log_softmax(model(x.squeeze(0)), dim=0), y.squeeze(0))
    """
    assert codes(body) == []


def test_an_option_that_scales_speaks_for_the_softmax() -> None:
    body = """
    def loss_of(x, y, scale=None):
        scores = torch.sigmoid(model(x))
        if args.scale:
            scores = scores * args.scale
        return F.cross_entropy(scores, y)

    for x, y in loader:
        loss_of(x, y)
    """
    assert codes(body) == []
