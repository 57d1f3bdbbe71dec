"""The division of a total of batch means, in the source around a loss."""

from __future__ import annotations

import ast

import pytest

from trueloop.doctor.model.batch_totals import divided_total

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
    tree = ast.parse(PROGRAM.format(begin=begin, add=add, end=end))
    loop = next(node for node in ast.walk(tree) if isinstance(node, ast.For))
    call = next(
        node
        for node in ast.walk(loop)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "measure"
    )
    found = divided_total(tree, loop, call)
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
