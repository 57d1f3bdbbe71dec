"""Networks whose layers are in containers, and how many there are is unknown: they are entered."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

NETWORK = """
import copy, sys, torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

class Block(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.layer, self.rate = nn.Linear(8, 8), rate

    def forward(self, x):
        return self.layer(F.scaled_dot_product_attention(x, x, x, dropout_p={rate}))

def copies(layer, count):
    return nn.ModuleList([copy.deepcopy(layer) for _ in range(count)])

class Net(nn.Module):
    def __init__(self, count, rate):
        super().__init__()
        self.count = count
        {made}
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        {used}
        return self.head(x)[:, 0]

net = Net(int(sys.argv[1]), float(sys.argv[2]))
optimizer = torch.optim.Adam(net.parameters())
for x, y in DataLoader(torch.load("a.pt"), shuffle=True):
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
"""
MANY = "[Block(rate) for _ in range(count)]"
LIST, NAMED = f"self.all = nn.ModuleList({MANY})", "{f'b{i}': Block(rate) for i in range(count)}"
PAIRS = "[nn.ModuleList([Block(rate), nn.Linear(8, 8)]) for _ in range(count)]"
ADDED = "for i in range(count): self.add_module(f'b{i}', Block(rate))"
CONTAINERS = {
    "list": (LIST, "for block in self.all: x = block(x)"),
    "list of a list that grows": (
        "found = []\n        for _ in range(count): found.append(Block(rate))\n"
        "        self.all = nn.ModuleList(found)",
        "for block in self.all: x = block(x)",
    ),
    "in place": (
        "self.all = nn.ModuleList()\n        for _ in range(count): self.all += [Block(rate)]",
        "for block in self.all: x = block(x)",
    ),
    "copies": ("self.all = copies(Block(rate), count)", "for block in self.all: x = block(x)"),
    "numbered": (LIST, "for number, block in enumerate(self.all): x = block(x)"),
    "by its number": (LIST, "for number in range(self.count): x = self.all[number](x)"),
    "the first ones": (LIST, "for block in self.all[:2]: x = block(x)"),
    "recomputed": (LIST, "for block in self.all: x = checkpoint(block, x, use_reentrant=False)"),
    "pairs": (f"self.all = nn.ModuleList({PAIRS})", "for one, two in self.all: x = two(one(x))"),
    "sequence": (f"self.all = nn.Sequential(*{MANY})", "x = self.all(x)"),
    "sequence that grows": (
        "self.all = nn.Sequential()\n"
        "        for i in range(count): self.all.add_module(str(i), Block(rate))",
        "x = self.all(x)",
    ),
    "dict": (f"self.all = nn.ModuleDict({NAMED})", "for name in self.all: x = self.all[name](x)"),
    "entries of a dict": (
        f"self.all = nn.ModuleDict({NAMED})", "for name, block in self.all.items(): x = block(x)",
    ),
    "list in a dict": (
        f"self.all = nn.ModuleDict(dict(drop=nn.Dropout(rate), blocks=nn.ModuleList({MANY})))",
        "for block in self.all.blocks: x = block(x)",
    ),
    "by name": (ADDED, "for i in range(self.count): x = getattr(self, f'b{i}')(x)"),
    "set by name": (
        "for i in range(count): setattr(self, f'b{i}', Block(rate))",
        "for i in range(self.count): x = getattr(self, f'b{i}')(x)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("made", "used"), CONTAINERS.values(), ids=CONTAINERS)
def test_layers_of_any_number_are_entered(made: str, used: str) -> None:
    always = NETWORK.format(made=made, used=used, rate="self.rate")
    asked = NETWORK.format(made=made, used=used, rate="self.rate if self.training else 0.0")
    assert [found.code for found in check_text(always, "a.py", strict=True).findings] == ["TL206"]
    assert check_text(asked, "a.py", strict=True).findings == []


def test_a_network_keeps_the_name_of_its_user() -> None:
    """Not the one that its own constructor has for each of its modules."""
    text = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        for module in self.modules():
            if isinstance(module, torch.nn.Linear):
                torch.nn.init.zeros_(module.bias)


network = Net()
torch.save(network, "network.pt")
"""
    (found,) = check_text(text, "<text>", strict=True).findings
    assert (found.code, found.message[:9]) == ("TL803", "`network`")


ENCODER = """
import torch
from torch import nn

layer = {layer}
network = nn.Sequential(nn.Embedding(9, 8), nn.{whole}, nn.Linear(8, 1))
optimizer = torch.optim.Adam(network.parameters())
train, val = torch.load("train.pt"), torch.load("val.pt")

@torch.no_grad()
def validate():
    return sum(nn.functional.mse_loss(network(x), y).item() for x, y in val)

for epoch in range(9):
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.mse_loss(network(x), y).backward()
        optimizer.step()
    print(validate())
"""
ENCODERS = "TransformerEncoder(layer, 2)"


@pytest.mark.parametrize(
    ("layer", "whole", "codes"),
    [
        ("nn.TransformerEncoderLayer(8, 2, dropout=0.0)", ENCODERS, []),
        ("nn.TransformerEncoderLayer(8, 2, 16, 0)", "TransformerEncoder(encoder_layer=layer)", []),
        ("nn.TransformerEncoderLayer(8, 2, 16, 0.2)", ENCODERS, ["TL202"]),
        ("nn.TransformerEncoderLayer(8, 2)", ENCODERS, ["TL202"]),
        ("torch.load('layer.pt')", ENCODERS, ["TL202"]),
        ("None", "Transformer(8, 2, 1, 1, 16, 0.0)", []),
        ("None", "Transformer(8, 2, 1, 1, 16)", ["TL202"]),
    ],
)
def test_the_dropout_of_transformers(layer: str, whole: str, codes: list[str]) -> None:
    found = check_text(ENCODER.format(layer=layer, whole=whole), "<text>", strict=True).findings
    assert [each.code for each in found if each.severity != "advice"] == codes
