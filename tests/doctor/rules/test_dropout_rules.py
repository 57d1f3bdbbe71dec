"""Dropout that is there and drops nothing, or that nobody evaluates."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PREDICTOR = """
import argparse
import torch
from torch import nn
from torch.nn import functional as F
parser = argparse.ArgumentParser()
parser.add_argument("--dropout", type=float, default={default})
args = parser.parse_args()
class Predictor(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.layer, self.rate = nn.Linear(4, 2), dropout
        self.drop = {layer}
    def forward(self, x):
        return self.layer({call})
model = Predictor({given})
optimizer = torch.optim.Adam(model.parameters())
train_loader = torch.utils.data.DataLoader(read("train"), shuffle=True)
val_loader = torch.utils.data.DataLoader(read("val"))
@torch.no_grad()
def validate():
    hits = 0
    for x, y in val_loader:
        hits += (model(x).argmax(1) == y).sum().item()
    return hits
for epoch in range(3):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(validate())
"""
FUNCTIONAL = "F.dropout(x, p=self.rate, training=self.training)"


@pytest.mark.parametrize(
    ("default", "layer", "call", "given", "expected"),
    [
        ("0.0", "None", FUNCTIONAL, "args.dropout", []),
        ("0", "None", FUNCTIONAL, "args.dropout", []),
        ("0.0", "nn.Dropout(dropout)", "self.drop(x)", "args.dropout", []),
        ("0.0", "nn.Dropout(p=dropout)", "self.drop(x)", "args.dropout", []),
        ("0.5", "nn.Identity()", FUNCTIONAL, "0.0", []),
        ("0.5", "None", FUNCTIONAL, "args.dropout", ["TL202"]),
        ("0.5", "nn.Dropout(dropout)", "self.drop(x)", "args.dropout", ["TL202"]),
        ("0.0", "nn.BatchNorm1d(4)", f"self.drop({FUNCTIONAL})", "args.dropout", ["TL202"]),
        ("0.0", "None", "x if self.training else 2 * x", "args.dropout", ["TL202"]),
        ("0.0", "None", "F.dropout(x, self.rate)", "args.dropout", []),
        ("0.5", "None", "F.dropout(x, self.rate)", "args.dropout", ["TL206"]),
    ],
)
def test_a_rate_that_is_zero_unless_given(
    default: str, layer: str, call: str, given: str, expected: list[str]
) -> None:
    text = PREDICTOR.format(default=default, layer=layer, call=call, given=given)
    assert [each.code for each in check_text(text, "<text>", strict=True).findings] == expected


GAN = """
import torch
from torch import nn
from torch.nn import functional as F
class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 1)
    def forward(self, x):
        return self.last(F.dropout(F.relu(self.first(x)), 0.3))
generator, discriminator = nn.Linear(2, 4), Discriminator()
for_g = torch.optim.Adam(generator.parameters())
for_d = torch.optim.Adam(discriminator.parameters())
ones = torch.ones(8, 1)
for x in torch.utils.data.DataLoader(read("real"), 8, shuffle=True):
    fake = generator(torch.randn(8, 2))
    for_d.zero_grad()
    loss = F.binary_cross_entropy_with_logits(discriminator(x), ones)
    loss = loss + F.binary_cross_entropy_with_logits(discriminator(fake.detach()), 0 * ones)
    loss.backward()
    for_d.step()
    for_g.zero_grad()
    F.binary_cross_entropy_with_logits(discriminator(fake), ones).backward()
    for_g.step()
{after}
"""


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("generator.eval()\nprint(generator(torch.randn(1, 2)))", []),
        ("with torch.no_grad():\n    print(generator(torch.randn(1, 2)))", []),
        ("torch.save(discriminator.state_dict(), 'd.pt')", []),
        ("discriminator.eval()\nprint(discriminator(torch.randn(1, 4)))", ["TL206"]),
        ("with torch.no_grad():\n    print(discriminator(torch.randn(1, 4)))", ["TL206"]),
    ],
)
def test_a_module_that_nobody_evaluates(after: str, expected: list[str]) -> None:
    text = GAN.format(after=after)
    assert [each.code for each in check_text(text, "<text>", strict=True).findings] == expected


def test_a_network_that_is_trained_and_saved_may_be_evaluated_elsewhere() -> None:
    """Only a discriminator serves nothing but the training."""
    saved = "torch.save(discriminator.state_dict(), 'd.pt')"
    text = GAN.format(after=saved).replace("Discriminator", "Second").replace("discrim", "gu")
    assert [each.code for each in check_text(text, "<text>", strict=True).findings] == ["TL206"]


def test_noise_that_sampling_drops() -> None:
    text = """
import torch
from torch import nn
class Diffusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)
    def {name}(self, x, rate):
        noise = torch.randn_like(x)
        if rate > 0.0:
            noise = nn.functional.dropout(noise, p=rate)
        return self.net(x) + noise
"""
    for name, expected in (("sample", []), ("forward", ["TL206"])):
        found = check_text(text.format(name=name), "<text>", strict=True).findings
        assert [each.code for each in found] == expected


ATTENTION = """
import torch
from torch import nn
class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.rate, self.q = config.rate, nn.Linear(8, 8)
    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(self.q(x), x, x, dropout_p=self.rate)
"""
TRAINED = """
config = read()
model = Attention(config)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in torch.utils.data.DataLoader(load("train"), batch_size=8, shuffle=True):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("rest", "expected"), [("", []), (TRAINED, ["TL206"])])
def test_attention_of_an_unknown_rate_is_reported_where_it_is_trained(
    rest: str, expected: list[str]
) -> None:
    report = check_text(ATTENTION + rest, "<text>", strict=True)
    assert [each.code for each in report.findings] == expected
