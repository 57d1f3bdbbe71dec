"""A module's constructor is read for the first modules of a class; later ones are copies, and the
rules hear of them what they would hear if the constructor had been read each time."""

from __future__ import annotations

from typing import Any

import pytest

from trueloop.doctor.model.events import Event, Made
from trueloop.doctor.model.things import Model, Optimizer
from trueloop.doctor.rules.shared.step_order import has_parameters_of
from trueloop.doctor.static import check_text
from trueloop.doctor.static.interpreter import calls, repeated_constructors

HEAD = """
import torch
from torch import nn

def norm(size):
    return nn.BatchNorm1d(size) if size else nn.Identity()

class Gate(nn.Module):
    def __init__(self, size, rate):
        super().__init__()
        self.size = size
        self.rate = rate
        self.drop = nn.Dropout(rate)
        self.scale = nn.Parameter(torch.ones(size))
        self.steps = [nn.ReLU(), nn.Tanh()]
        nn.init.zeros_(self.scale)

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return self.drop(x) * self.scale

class Block(nn.Module):
    def __init__(self, size, out, rate=0.1, parts=3):
        super().__init__()
        self.layers = nn.ModuleList()
        for part in range(parts):
            self.layers.append(nn.Sequential(nn.Linear(size, size), norm(size)))
        self.gate = Gate(size, rate)
        self.skip = nn.Identity() if size == out else nn.Linear(size, out)
        self.out = nn.Linear(size, out)
        if rate > 0.2:
            for p in self.out.parameters():
                p.requires_grad = False

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return self.out(self.gate(x)) + self.skip(x)
"""
NETWORKS = {
    "loop": """
class Net(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.blocks = nn.ModuleList([Block(size, 2 * size) for size in sizes])
        self.more = nn.ModuleList()
        for size in sizes:
            self.more.append(Block(size, size))
        self.first, self.second = Block(8, 8), Block(8, 8)
        self.third, self.fourth = Block(8, 8), Block(8, 8)

    def forward(self, x):
        for block in [*self.blocks, *self.more]:
            x = block(x)
        return self.fourth(self.third(self.second(self.first(x))))

net = Net(read_sizes())
""",
    "sizes": """
import sys
net = nn.Sequential(
    Block(8, 8), Block(8, 16), Block(16, 16), Block(16, 32), Block(32, 32), Block(32, 64),
    Block(64, 64), Block(64, 64), Block(64, 64, rate=0.5), Block(64, 64, rate=0.5),
    Block(64, 64, rate=0.5), Block(64, 10), Block(10, 10), Block(10, 10, 0.0, 1),
)
if len(sys.argv) > 1:
    net.append(Block(10, 10))
    net.append(Block(10, 10))
""",
    "folds": """
for fold in range(5):
    net = nn.Sequential(Block(8, 8), Block(8, 8), Block(8, 8), Block(8, 8))
    net[0].gate = Gate(4, 0.5)
    net.eval()
""",
    "arguments": """
from accelerate import Accelerator

class Layer(nn.Module):
    def __init__(self, config, act, size, hook, *, norm=None):
        super().__init__()
        self.config, self.hook = config, hook
        self.act, self.norm = act(), (norm or nn.LayerNorm)(size)
        self.one, self.two = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

    def forward(self, x):
        return self.norm(x + self.two(self.act(self.one(x))))

accelerator = Accelerator()
net = nn.Sequential(
    *[Layer(accelerator, nn.ReLU, size, print) for size in (4, 8, 16, 32)],
    *[Layer(accelerator, nn.GELU, size, lambda x: x, norm=nn.Identity) for size in (64, 32, 16)],
    *[Layer(config, nn.GELU, 8, accelerator.print) for config in read_configs()],
    *[Layer({"a": (1, 2)}, nn.GELU, 8, norm, norm=None) for _ in range(9)],
)
""",
    "search": """
def build(rate):
    return nn.Sequential(Block(8, 8, rate), Block(8, 8, rate), Block(8, 8, rate))

for rate in (0.1, 0.3, 0.5):
    net = build(rate)
""",
}
TRAINING = """
optimizer = torch.optim.Adam(net.parameters())
for x, y in torch.utils.data.DataLoader(data, 8):
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def structure(model: Any, seen: frozenset[int] = frozenset()) -> Any:
    """A module with everything inside it, as far as rules look at it."""
    if not isinstance(model, Model):
        return type(model).__name__
    if id(model) in seen:
        return "itself"
    within = seen | {id(model)}
    inner = [(name, structure(each, within)) for name, each in model.children.items()]
    plain = [
        (name, type(each).__name__, getattr(each, "value", None), getattr(each, "shape", None))
        for name, each in sorted(model.attributes.items())
    ]
    facts = (
        model.kind, model.name, model.made, model.training, model.complete, model.guards,
        model.mode_dependent, model.arguments, len(model.parents), model.asks_mode,
    )  # fmt: skip
    return *facts, inner, plain


def heard(text: str) -> tuple[list[tuple[Any, ...]], int, list[Any]]:
    """What the rules hear of a program, its cost, and its findings."""
    events: list[tuple[Any, ...]] = []

    def listen(event: Event) -> None:
        turns = tuple((turn.loop.place, turn.index) for turn in event.turns)
        parts = [each for _, each in sorted(vars(event).items()) if isinstance(each, Model)]
        where = event.place, event.stack, turns, event.guards, event.grad, event.windows
        events.append((type(event).__name__, where, parts))

    report = check_text(text, "/nowhere/net.py", listen=listen, strict=True)
    # A copy is what the first module is when its constructor has ended; so they are compared late.
    events = [(*each[:-1], [structure(part) for part in each[-1]]) for each in events]
    found = [(each.code, each.place, each.message) for each in report.findings]
    return events, report.steps, found


@pytest.mark.parametrize("network", sorted(NETWORKS))
def test_rules_hear_of_copies_what_they_hear_of_modules_that_were_read(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HEAD + NETWORKS[network] + TRAINING
    repeated = 0
    repeat = repeated_constructors._repeat

    def counted(*given: Any) -> None:
        nonlocal repeated
        repeated += 1
        repeat(*given)

    monkeypatch.setattr(repeated_constructors, "_repeat", counted)
    copied = heard(text)
    assert repeated
    monkeypatch.setattr(calls, "construct", lambda *given: given[-1]())
    read = heard(text)
    assert copied[0] == read[0]
    assert copied[2] == read[2]
    assert copied[1] < read[1]


def test_copies_have_no_part_in_common() -> None:
    """A new gate, and a mode that is set, stay with the block that they were given to."""
    made: list[Model] = []

    def listen(event: Event) -> None:
        if isinstance(event, Made) and getattr(event.thing, "kind", "") == "Block":
            assert isinstance(event.thing, Model)
            made.append(event.thing)

    text = HEAD + "blocks = [Block(8, 8), Block(8, 8), Block(8, 8), Block(8, 8)]\n"
    text += "blocks[0].eval()\nblocks[1].gate = Gate(4, 0.5)\nblocks[2].layers.append(norm(8))\n"
    check_text(text, "/nowhere/net.py", listen=listen, strict=True)
    blocks = made[:4]
    for position, one in enumerate(blocks):
        for other in blocks[position + 1 :]:
            assert not one.overlaps(other)
            assert one.attributes is not other.attributes
            assert one.children["gate"].attributes is not other.children["gate"].attributes
    assert [block.training for block in blocks] == [False, True, True, True]
    assert [len(block.children["layers"].children) for block in blocks] == [3, 3, 4, 3]


@pytest.mark.parametrize(
    "constructor",
    [
        "all_blocks.append(self)",
        "Part.count = Part.count + 1",
        "global count; count = count + 1",
        "self.shared = shared",
    ],
)
def test_a_constructor_that_changes_what_was_there_before_is_read_each_time(
    constructor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any) -> None:
        raise AssertionError("it was copied")

    monkeypatch.setattr(repeated_constructors, "_repeat", fails)
    text = f"""
import torch
from torch import nn
all_blocks, count, shared = [], 0, nn.Linear(2, 2)
class Part(nn.Module):
    count = 0
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)
        {constructor}
        self.other = nn.Sequential(nn.Linear(size, size), nn.ReLU())
parts = [Part(4), Part(4), Part(4), Part(4)]
"""
    check_text(text, "/nowhere/net.py", strict=True)


def test_an_optimizer_has_parameters_of_what_it_shares_a_part_with() -> None:
    inner, beside, alone = Model(kind="A"), Model(kind="B"), Model(kind="C")
    outer = Model(kind="Outer", children={"inner": inner, "beside": beside})
    optimizer = Optimizer(models=[inner])
    assert has_parameters_of(optimizer, inner)
    assert has_parameters_of(optimizer, outer)
    assert not has_parameters_of(optimizer, beside)
    optimizer.models.append(alone)
    assert has_parameters_of(optimizer, alone)
    inner.children["new"] = beside
    assert has_parameters_of(optimizer, beside)


def test_a_constructor_that_makes_what_cannot_be_copied_is_read_each_time() -> None:
    program = """
import torch
from torch import nn
from transformers import AutoConfig

class Settings:
    folds = [0, 1, 2, 3]

class Net(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.config = AutoConfig.from_pretrained(settings.model)
        self.head = nn.Linear(self.config.hidden_size, 2)

def fit(fold):
    model = Net(Settings)
    for epoch in range(Settings.epochs):
        if best > score:
            torch.save(model.state_dict(), f"{Settings.model.replace('/', '-')}_{fold}.pt")

Settings.model = args.model
for fold in range(Settings.count):
    if fold in Settings.folds:
        fit(fold)
"""
    assert not check_text(program, "folds.py", strict=True).findings
