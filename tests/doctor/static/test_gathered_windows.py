"""Windows of micro-batches: generator functions that make them, lists that have them, and what only
looks so."""

from __future__ import annotations

import ast

import pytest

from trueloop.doctor.model.window_makers import Windows, windows_in
from trueloop.doctor.static import check_text

SLICES = """
def windows(stream, size):
    stream = iter(stream)
    while window := list(islice(stream, size)):
        yield window
"""
ENDLESS = """
def windows(stream, size):
    '''Its last one may have fewer.'''
    batches = iter(stream)
    while True:
        window = tuple(itertools.islice(batches, size))
        if not window:
            return
        yield window
"""
WHOLE = ENDLESS.replace("not window", "len(window) < size")
GROUPS = """
def windows(stream, size):
    group = []
    for batch in stream:
        group.append(batch)
        if len(group) == size:
            yield group
            group = []
"""
REST = GROUPS + "    if group:\n        yield group\n"


def made(text: str) -> Windows | None:
    return windows_in(ast.parse(text).body[0])


@pytest.mark.parametrize(
    ("text", "with_rest"),
    [(SLICES, True), (ENDLESS, True), (WHOLE, False), (GROUPS, False), (REST, True)],
)
def test_source_size_and_rest(text: str, with_rest: bool) -> None:
    found = made(text)
    assert found is not None
    assert (ast.unparse(found.source), ast.unparse(found.size)) == ("stream", "size")
    assert found.with_rest is with_rest


def test_of_attributes_and_constants() -> None:
    text = GROUPS.replace("stream:", "self.loader:").replace("== size", ">= 4")
    found = made(text)
    assert found is not None
    assert (ast.unparse(found.source), ast.unparse(found.size)) == ("self.loader", "4")


@pytest.mark.parametrize(
    "text",
    [
        GROUPS.replace("            group = []", "            group = group[1:]"),
        GROUPS.replace("            group = []\n", ""),
        GROUPS.replace("group.append(batch)", "group.append(batch.half())"),
        GROUPS.replace("yield group", "yield group[0]"),
        GROUPS.replace("len(group) ==", "len(group) <"),
        REST.replace("if group:\n        yield group", "if group:\n        yield group[0]"),
        SLICES.replace("list(islice(stream, size))", "next(stream)"),
        SLICES.replace("yield window", "yield window[::-1]"),
        SLICES.replace("        yield window", "        train(window)\n        yield window"),
        "window = 3",
    ],
)
def test_what_does_more_is_not_one(text: str) -> None:
    assert made(text) is None


BEFORE = """
from itertools import batched, islice

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(240, 6)
data = TensorDataset(x, (x[:, 0] > 0).long())
loader = DataLoader(data, batch_size=16, shuffle=True)
other = DataLoader(TensorDataset(x, (x[:, 1] > 0).long()), batch_size=16, shuffle=True)
domains = [DataLoader(data, batch_size=size, shuffle=True) for size in (8, 16)]
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
"""
UPDATE = """
optimizer.zero_grad()
for inputs, targets in window:
    loss = criterion(model(inputs), targets)
    loss.backward()
optimizer.step()
"""


def alarms(lines: str, update: str = UPDATE, before: str = BEFORE) -> list[str]:
    """Of a program with these lines in each of its epochs; `UPDATE` is the block above."""
    found = before
    for line in lines.strip().splitlines():
        indent = " " * (4 + len(line) - len(line.lstrip()))
        for each in update.strip().splitlines() if line.strip() == "UPDATE" else [line.strip()]:
            found += f"{indent}{each}\n"
    return [
        each.code for each in check_text(found, "train.py").findings if each.severity != "advice"
    ]


WINDOWS = {
    "slices": "stream = iter(loader)\nwhile window := list(islice(stream, 4)):\n    UPDATE",
    "endless": """
stream = iter(loader)
while True:
    window = list(islice(stream, 4))
    if not window:
        break
    UPDATE
""",
    "batched": "for number, window in enumerate(batched(loader, 4)):\n    UPDATE",
    "next": """
stream = iter(loader)
for update in range(len(loader) // 4):
    window = [next(stream) for _ in range(4)]
    UPDATE
""",
    "collected": """
window = []
for batch in loader:
    window.append(batch)
    if len(window) == 4:
        UPDATE
        window = []
""",
}


@pytest.mark.parametrize("lines", WINDOWS.values(), ids=WINDOWS.keys())
def test_means_of_a_window_are_not_divided(lines: str) -> None:
    assert alarms(lines) == ["TL505"]
    assert alarms(lines, UPDATE.replace("targets)\n", "targets) / len(window)\n")) == []


@pytest.mark.parametrize("lines", [WINDOWS[each] for each in ("slices", "batched", "next")])
@pytest.mark.parametrize(("planned", "found"), [("60", ["TL605"]), ("len(loader) // 4 * 4", [])])
def test_length_of_a_schedule(lines: str, planned: str, found: list[str]) -> None:
    divided = UPDATE.replace("targets)\n", "targets) / len(window)\n") + "scheduler.step()\n"
    made = f"torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max={planned})"
    before = BEFORE.replace("criterion = ", f"scheduler = {made}\ncriterion = ")
    assert alarms(lines, divided, before) == found


OTHERS = {
    "domains": """
streams = [iter(each) for each in domains]
for update in range(4):
    window = [next(each) for each in streams]
    UPDATE
""",
    "pairs": "for first, second in zip(loader, other):\n    window = [first, second]\n    UPDATE",
    "memory": "window = []\nfor batch in loader:\n    window.append(batch)\n    UPDATE",
    "one": "for batch in loader:\n    window = [batch]\n    UPDATE",
    "views": """
for inputs, targets in loader:
    window = [(inputs, targets), (inputs.flip(1), targets)]
    UPDATE
""",
    "the whole set": "window = list(loader)\nfor update in range(3):\n    UPDATE",
}


@pytest.mark.parametrize("lines", OTHERS.values(), ids=OTHERS.keys())
def test_sums_on_purpose(lines: str) -> None:
    assert alarms(lines) == []
