"""The division of what a meter has added up, in the source around a loss."""

from __future__ import annotations

import ast

import pytest

from trueloop.doctor.model.loss_meters import metered_total

PROGRAM = """\
class Meter:
    def __init__(self):
        self.turns = 0
        self.total = 0.0

    def {update}:
        {adds}
        return self

    def result(self, data):
        {returns}

def examine(net, loader, measure, flag):
    {made}
    for step, (x, y) in enumerate(loader):
        {add}
    {end}
"""
USUAL = {
    "update": "update(self, value)",
    "adds": "self.total += value",
    "returns": "return self.total / len(data.dataset)",
    "made": "meter = Meter()",
    "add": "meter.update(measure(net(x), y).item())",
    "end": "return meter.result(loader)",
}
SUMS = {"update": "__iadd__(self, value)", "add": "meter += measure(net(x), y).item()"}


def counted(**parts: str) -> str:
    """The thing whose length the total is divided by."""
    tree = ast.parse(PROGRAM.format(**USUAL | parts))
    loop = next(node for node in ast.walk(tree) if isinstance(node, ast.For))
    call = next(
        node
        for node in ast.walk(loop)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "measure"
    )
    found = metered_total(tree, loop, call)
    return ast.unparse(found.counted) if found is not None else ""


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"adds": "self.turns += 1\n        self.total += float(value)"},
        {"add": "loss = measure(net(x), y)\n        meter.update(loss)",
         "adds": "self.total += value.item()"},
        {"add": "with flag:\n            meter.update(measure(net(x), y).item())"},
        {"end": "return meter.total / len(loader.dataset)"},
        {"end": "count = len(loader.dataset)\n    return meter.total / count"},
        {"returns": "return self.total / len(data)", "end": "return meter.result(loader.dataset)"},
        SUMS,
        SUMS | {"end": "return meter.total / len(loader.dataset)"},
    ],
)  # fmt: skip
def test_a_meter_over_a_length(parts: dict[str, str]) -> None:
    assert counted(**parts) == "loader.dataset"


@pytest.mark.parametrize(
    "parts",
    [
        {"update": "update(self, value, count=1)", "adds": "self.total += value * count"},
        {"add": "meter.update(measure(net(x), y).item(), len(x))"},
        {"add": "meter.update(measure(net(x), y).item() * len(x))"},
        {"add": "if flag:\n            meter.update(measure(net(x), y).item())"},
        {"adds": "self.total += value\n        self.total *= 0.9"},
        {"adds": "self.total = value"},
        {"adds": "if value > 0:\n            self.total += value"},
        {"returns": "return self.total / self.turns"},
        {"returns": "return self.total / len(data.dataset) * data.batch_size"},
        {"end": "return meter.result(loader) * loader.batch_size"},
        {"end": "return meter.result(loader) if flag else None"},
        {"end": "print(meter.result(loader))\n    return meter.total / len(loader)"},
        {"made": "meter = flag"},
        {"made": "meter = Other()"},
    ],
)
def test_other_meters(parts: dict[str, str]) -> None:
    assert counted(**parts) == ""
