"""Functions that are called again and again with arguments of the same kinds are read once; what
they do to a training is seen all the same."""

from __future__ import annotations

import pytest

from trueloop.doctor.model.events import Event, LoopEntered
from trueloop.doctor.static import Report, check_text

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader

"""
TRAIN = """
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(9):
    for x, y in DataLoader(torch.load("a.pt"), shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""
CLEAN = """
def clean(text):
    found = []
    for letter in text:
        if letter.isdigit():
            found.append("#")
        elif letter in "abcdefghij":
            found.append(letter.upper())
        else:
            found.append(letter)
    return "".join(found)

"""
BOXES = """
def overlap(a, b):
    area = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    other = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    left = torch.max(a[:, None, :2], b[:, :2])
    right = torch.min(a[:, None, 2:], b[:, 2:])
    size = (right - left).clamp(min=0)
    inside = size[:, :, 0] * size[:, :, 1]
    return inside / (area[:, None] + other - inside)

"""
BLOCK = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
    def forward(self, x):
        weight = torch.softmax(x @ x.transpose(-2, -1), dim=-1)
        mixed = weight @ x + torch.tanh(x) * torch.relu(x)
        return self.inner(mixed) + x * weight.mean() + torch.sin(x) - torch.cos(x)

"""


def read(text: str) -> Report:
    report = check_text(HEAD + text, "/nowhere/a.py", strict=True)
    assert report.gaps.unread_file("/nowhere/a.py") is None
    return report


def codes(text: str) -> list[str]:
    return [found.code for found in read(text).findings]


REPEATED = {
    "texts": (CLEAN, "".join(f"clean('line {number} of a text')\n" for number in range(300))),
    "tensors": (BOXES, "a, b = torch.rand(3, 4), torch.rand(3, 4)\n" + "overlap(a, b)\n" * 300),
    "layers": (
        BLOCK,
        "blocks = [Block() for _ in range(6)]\nx = torch.rand(4, 4)\n"
        "def all_blocks(x):\n    for block in blocks:\n        x = block(x)\n    return x\n"
        "class All(nn.Module):\n    def forward(self, x):\n"
        + "        x = all_blocks(x)\n" * 60 + "        return x\nAll()(x)\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("function", "calls"), REPEATED.values(), ids=REPEATED)
def test_calls_of_one_kind_cost_no_more_than_their_results(function: str, calls: str) -> None:
    report = read(function + calls + TRAIN)
    assert not report.findings
    assert report.steps < 9_000


UNCLEARED = TRAIN.replace("        optimizer.zero_grad()\n", "        {}\n")


def test_a_helper_that_clears_the_gradients_is_read_each_time() -> None:
    often = "def clear(optimizer, log={}):\n    for group in optimizer.param_groups:\n"
    often += "        log['rate'] = group['lr']\n        log['last'] = str(log['rate']) + 'x'\n"
    assert codes(f"{often}\n{UNCLEARED.format('clear(optimizer)')}") == ["TL102"]
    often += "    optimizer.zero_grad()\n"
    assert not codes(f"{often}\n{UNCLEARED.format('clear(optimizer)')}")


def test_a_helper_that_steps_every_few_calls_is_read_each_time() -> None:
    counts = """
class Window:
    def __init__(self):
        self.calls = 0
    def tick(self, optimizer):
        self.calls += 1
        name = "call " + str(self.calls) + " of " + str(optimizer)
        if self.calls % 3 == 0:
            optimizer.step()
            optimizer.zero_grad()
        return name

window = Window()
"""
    text = UNCLEARED.format("pass").replace("loss.backward()", "(loss / 3).backward()")
    text = text.replace("        optimizer.step()\n", "        CALL\n")
    assert not codes(counts + text.replace("CALL", "window.tick(optimizer)"))


def test_losses_of_a_helper_keep_their_graph() -> None:
    helper = """
def weighted(outputs, targets, weight):
    difference = (outputs - targets) ** 2 * weight + (outputs - targets).abs() * (1 - weight)
    spread = difference.mean(dim=1) + outputs.mean(dim=1) * 0.1 + targets.mean(dim=1) * 0.1
    return spread.mean() + difference.max() * 0.5

"""
    train = TRAIN.replace("nn.functional.cross_entropy(model(x), y)", "weighted(model(x), y, 0.5)")
    assert not codes(helper + train)
    kept = train.replace("for epoch", "kept = []\nfor epoch") + "        kept.append(loss)\n"
    assert codes(helper + kept) == ["TL204"]


def test_an_evaluation_by_a_helper_is_seen_in_each_mode() -> None:
    helper = """
def score(model, loader):
    total, count = 0, 0
    with torch.no_grad():
        for x, y in loader:
            total += (model(x).argmax(1) == y).sum().item()
            count += len(y)
    return total / max(count, 1)

"""
    loader = "val = DataLoader(torch.load('b.pt'))\n"
    right = TRAIN.replace("    for x, y", "    model.train()\n    for x, y")
    right += "    model.eval()\n    print(score(model, val))\n"
    assert not codes(helper + loader + right)
    assert codes(helper + loader + right.replace("    model.eval()\n", "")) == ["TL202"]


def test_lists_that_a_helper_fills_are_as_long_as_they_were_made() -> None:
    helper = """
def put(items, value):
    text = "a value of " + str(value) + " and of " + str(value) + " and of " + str(value)
    items.append(value)
    return text + " which is " + text

items = []
put(items, 1)
put(items, 1)
put(items, 1)
put(items, 1)
if len(items) == 4:
    CLEAR = True
else:
    CLEAR = False
"""
    assert not codes(helper + UNCLEARED.format("CLEAR and optimizer.zero_grad()"))


STACK = """
class Stage(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.inner = nn.Linear(width, width)
    def forward(self, x):
        maps, total = [], 0
        mask = torch.zeros_like(x)
        mask[x > 0.5] = 1
        for part in (x, x * 2, x + 1):
            maps.append(torch.tanh(self.inner(part)) * mask + torch.relu(part))
            total = total + maps[-1].mean() + part.std() + part.abs().max() + part.sin().mean()
        KEEP
        x = torch.cat(maps).view(3, -1, self.width).sum(0) * torch.sigmoid(total)
        return x, maps

class All(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([Stage(4), Stage(4), Stage(4), Stage(4)])
    def forward(self, x):
        found = []
        for stage in self.stages:
            x, maps = stage(x)
            found.append(maps)
        return x

model = All()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in DataLoader(torch.load("a.pt"), shuffle=True):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""


def test_a_layer_may_fill_lists_and_tensors_of_its_own() -> None:
    """Nothing that was there before the call changes: the next layer like it is not read."""
    own = read(STACK.replace("KEEP", "maps.append(x)"))
    assert not own.findings
    text = STACK.replace("KEEP", "SEEN.append(x.detach())")
    outer = read(text.replace("class Stage", "SEEN = []\nclass Stage"))
    assert not outer.findings
    assert own.steps < outer.steps / 2


SEARCH = """
def train(rate):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), rate)
    for epoch in range(9):
        for x, y in DataLoader(torch.load("a.pt"), shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return evaluate(model)

"""


@pytest.mark.parametrize(
    ("loop", "times"),
    [
        ("for trial in range(count()):\n    train(rate(trial))", 2),
        ("for fold in range(10):\n    for trial in range(count()):\n        train(rate(trial))", 3),
        ("while unsure():\n    train(rate())", 2),
        ("for name in ['a', 'b', 'c']:\n    train(table(name))", 3),
        ("train(0.1)\ntrain(0.2)\ntrain(0.3)", 3),
    ],
)
def test_a_search_reads_its_training_twice(loop: str, times: int) -> None:
    """Only where its turns differ in numbers; what is listed by name is read each time."""
    begun: list[int] = []

    def listen(event: Event) -> None:
        if isinstance(event, LoopEntered) and event.loop.kind == "epochs":
            begun.append(event.place.function == "train")

    check_text(HEAD + SEARCH + loop, "/nowhere/a.py", strict=True, listen=listen)
    runs = 2 if "unsure" in loop else 1
    assert sum(begun) in (times, runs * times)
