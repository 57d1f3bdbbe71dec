"""Objects of classes that extend a library's: `eval()` reaches the layers that they hold."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
IMPORT


class Tagger(BASE):
    def __init__(self, config):
        super().__init__(config)
        self.layer = nn.TransformerEncoderLayer(8, 2)
        self.out = nn.Linear(8, 2)

    def compute_loss(self, x, y):
        return nn.functional.cross_entropy(self.out(self.layer(x)), y)


def validate(loader):
    SWITCH
    total = n = 0
    with torch.no_grad():
        for x, y in loader:
            total += model.compute_loss(x, y).item() * len(x)
            n += len(x)
    return total / n


data = TensorDataset(torch.randn(90, 8), torch.randint(0, 2, (90,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = MAKE
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for epoch in range(3):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        model.compute_loss(x, y).backward()
        optimizer.step()
    print(validate(loader))
"""
CLASSES = [
    ("from transformers import BertPreTrainedModel", "BertPreTrainedModel"),
    ("from transformers import BertModel", "BertModel"),
    ("from transformers import GPT2ForSequenceClassification", "GPT2ForSequenceClassification"),
    ("from pytorch_transformers import XLNetPreTrainedModel", "XLNetPreTrainedModel"),
    ("from nets import BaseNet", "BaseNet"),
    ("import nets", "nets.Base"),
]


def codes(
    imported: str, base: str, switch: str = "model.eval()", make: str = "Tagger(1)"
) -> list[str]:
    words = {"IMPORT": imported, "BASE": base, "SWITCH": switch, "MAKE": make}
    program = PROGRAM
    for word, text in words.items():
        program = program.replace(word, text)
    return [each.code for each in check_text(program, "train.py").findings]


@pytest.mark.parametrize(("imported", "base"), CLASSES)
def test_a_validation_in_eval_mode(imported: str, base: str) -> None:
    assert codes(imported, base) == []
    assert codes(imported, base, make='Tagger.from_pretrained("x")') == []


@pytest.mark.parametrize(("imported", "base"), CLASSES[:4])
def test_a_validation_without_eval(imported: str, base: str) -> None:
    assert codes(imported, base, switch="pass") == ["TL202"]


def test_train_of_a_foreign_class_may_switch_its_parts() -> None:
    program = """
import torch
from somewhere import Engine
from torch import nn


class Mine(Engine):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.opt = torch.optim.Adam(net.parameters())

    def one(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            nn.functional.mse_loss(self.net(x), y).backward()
            self.opt.step()

    def two(self, loader):
        self.net.eval()
        with torch.no_grad():
            for x, y in loader:
                print(self.net(x).mean().item())


loader = [(torch.randn(8, 3), torch.randn(8, 3)) for _ in range(9)]
mine = Mine(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)))
for epoch in range(3):
    BEFORE
    mine.one(loader)
    mine.two(loader)
"""
    found = check_text(program.replace("BEFORE", "pass"), "train.py").findings
    assert [each.code for each in found] == ["TL201"]
    assert not check_text(program.replace("BEFORE", "mine.train()"), "train.py").findings
