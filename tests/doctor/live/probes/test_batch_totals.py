"""The division of a total of batch means, or of what a meter has added up, in the source around a
loss."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from trueloop.doctor.live.frames.source_map import uses_up
from trueloop.doctor.model.batch_totals import DividedTotal, divided_total
from trueloop.doctor.model.loss_meters import metered_total

PROGRAM = """\
def examine(net, loader, measure, flag):
    {begin}
    for step, (x, y) in enumerate(loader):
        {add}
    {end}
"""
BEGIN = "total = 0.0"
ADD = "total += measure(net(x), y).item()"
END = "return total / len(loader.dataset)"


def counted(begin: str = BEGIN, add: str = ADD, end: str = END) -> str:
    """The thing whose length the total is divided by."""
    return counted_by(divided_total, PROGRAM.format(begin=begin, add=add, end=end))


def counted_by(find: Callable[..., DividedTotal | None], program: str) -> str:
    tree = ast.parse(program)
    loop = next(node for node in ast.walk(tree) if isinstance(node, ast.For))
    call = next(
        node
        for node in ast.walk(loop)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "measure"
    )
    found = find(tree, loop, call)
    return ast.unparse(found.counted) if found is not None else ""


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"begin": "total, seen = 0.0, 0"},
        {"add": "loss = measure(net(x), y)\n        total += float(loss)"},
        {"add": "with flag:\n            total += measure(net(x), y).detach().cpu().item()"},
        {"add": ADD + "\n        print(total / (step + 1))"},
        {"begin": "total = []", "add": "total.append(measure(net(x), y).item())",
         "end": "return sum(total) / len(loader.dataset)"},
        {"end": "total /= len(loader.dataset)\n    return total"},
        {"end": "count = len(loader.dataset)\n    return total / float(count)"},
    ],
)  # fmt: skip
def test_total_over_a_length(parts: dict[str, str]) -> None:
    assert counted(**parts) == "loader.dataset"


@pytest.mark.parametrize(
    "parts",
    [
        {"add": "total += measure(net(x), y).item() * len(x)"},
        {"add": "total += float(measure(net(x), y) * len(x))"},
        {"add": "loss = measure(net(x), y)\n        loss *= len(x)\n        total += loss.item()"},
        {"add": "loss = measure(net(x), y)\n        total += loss.item()\n        total += 1"},
        {"add": "if flag:\n            total += measure(net(x), y).item()"},
        {"begin": "total = net.total"},
        {"end": "return total / (len(loader.dataset) / 8)"},
        {"end": "return 8 * (total / len(loader.dataset))"},
        {"end": "mean = total / len(loader.dataset)\n    return mean * loader.batch_size"},
        {"end": "total /= len(loader.dataset)\n    total *= 8\n    return total"},
        {"end": "total *= 8\n    return total / len(loader.dataset)"},
        {"end": "return total / len(loader) if flag else total / len(loader.dataset)"},
        {"end": "if flag:\n        total /= len(loader.dataset)\n    return total"},
        {"end": "if flag:\n        return total / len(loader)\n    " + END},
        {"begin": "total = []", "add": "total.append(measure(net(x), y).item())",
         "end": "total.extend(total)\n    return sum(total) / len(loader.dataset)"},
    ],
)  # fmt: skip
def test_other_totals(parts: dict[str, str]) -> None:
    assert counted(**parts) == ""


METERED = """\
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


def metered(**parts: str) -> str:
    """The same of a meter."""
    return counted_by(metered_total, METERED.format(**USUAL | parts))


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
    assert metered(**parts) == "loader.dataset"


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
    assert metered(**parts) == ""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("learn(batch)", True),
        ("loss = net(batch)\n    loss.backward()", True),
        ("yield batch", False),
        ("group.append(batch)", False),
        ("group.append(prepared(batch))", False),
        ("losses.append(learn(net))", True),
    ],
)
def test_loops_of_generators_that_use_up_the_batches(body: str, expected: bool) -> None:
    """The loop of `def epochs(loader)`, apart from `for batch in islice(loader, 4): ...`, which
    only makes groups."""
    node = ast.parse(f"for batch in islice(loader, 4):\n    {body}").body[0]
    assert isinstance(node, ast.For)
    assert uses_up(node) is expected
